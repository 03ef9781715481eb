#include "tessera/shard/tensor_strategy.h"

#include "tessera/base/divisors.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

TensorLayout spread_tensor(const std::string& what, const Shape& shape,
                           const std::vector<std::int64_t>& splits, std::int64_t devices) {
  require(static_cast<std::size_t>(shape.ndim()) == splits.size(), what, ": a strategy of ",
          splits.size(), " dims for the shape ", shape, "; give each dim a number");
  std::vector<std::string> reasons;
  for (int d = 0; d < shape.ndim(); ++d) {
    const std::int64_t n = splits[static_cast<std::size_t>(d)];
    if (n < 1 || shape[d] % n != 0)
      reasons.push_back(text(what, ": dim ", d, " of size ", shape[d], " is split ", n,
                             " times; legal: ", divisors(shape[d])));
  }
  std::int64_t ranks = 1;
  for (const std::int64_t n : splits) ranks *= n;
  if (ranks > 0 && devices % ranks != 0)
    reasons.push_back(text(what, ": its splits make ", ranks, " parts, which does not divide ",
                           devices, " devices; legal products: ", divisors(devices)));
  require(reasons.empty(), join(reasons, "\n"));
  TensorLayout out{splits, {}, {}};
  for (std::size_t d = 0; d < splits.size(); ++d)
    out.map.push_back(splits[d] == 1 ? std::vector<int>{}
                                     : std::vector<int>{static_cast<int>(splits.size() - 1 - d)});
  if (ranks < devices) out.matrix.insert(out.matrix.begin(), devices / ranks);
  return out;
}

}  // namespace tessera
