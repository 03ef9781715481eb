// Bytes of redistributions beside those of MindSpore's inference, on random pairs of layouts and a
// machine whose links are all alike and have no latency: ours never receive more.
//
// TESSERA_LAYOUT_PAIRS=1000000 build/shard_test --gtest_filter='RedistributionCampaign.*'
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

#include "machine_line.h"
#include "shard/their_moves.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/passes/redistribute.h"

namespace tessera::test {
namespace {

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }

  /// Sizes of at least 2 whose product is `ranks`, in any order.
  DeviceMatrix matrix(std::int64_t ranks) {
    DeviceMatrix out;
    while (ranks > 1) {
      std::vector<std::int64_t> sizes;
      for (std::int64_t n = 2; n <= ranks; ++n) {
        if (ranks % n == 0) sizes.push_back(n);
      }
      out.push_back(out.size() == 3 ? ranks : sizes[below(sizes.size())]);
      ranks /= out.back();
    }
    std::shuffle(out.begin(), out.end(), random_);
    return out;
  }

  /// Each dim of the matrix cuts one dim of the tensor or none; those of one dim in any order.
  TensorLayout layout(const DeviceMatrix& matrix, const std::vector<std::int64_t>& shape) {
    TensorLayout out{matrix, TensorMap(shape.size()), {}};
    std::vector<int> dims(matrix.size());
    std::iota(dims.begin(), dims.end(), 0);
    std::shuffle(dims.begin(), dims.end(), random_);
    for (const int dim : dims) {
      const std::size_t d = below(shape.size() + 1);
      if (d == shape.size()) continue;
      out.map[d].push_back(dim);
      if (shape[d] % out.splits()[d] != 0) out.map[d].pop_back();
    }
    return out;
  }

 private:
  std::mt19937 random_;
};

Sharding sharding_of(const TensorLayout& layout, const RefinedMatrix& refined) {
  Sharding out = Sharding::replicated(static_cast<int>(layout.map.size()));
  for (std::size_t d = 0; d < layout.map.size(); ++d) {
    for (const int dim : layout.map[d]) {
      for (const int axis : refined.axes_of(layout.matrix, dim))
        out.dims[d].push_back(text("d", axis));
    }
  }
  return out;
}

struct Tally {
  std::int64_t pairs = 0, fewer = 0, with_all_to_all_fewer = 0;
  double log_ratio = 0, most = 1, all_to_all_log_ratio = 0, all_to_all_most = 1;
};

TEST(RedistributionCampaign, NeverMoreBytesThanMindSpore) {
  const char* const asked = std::getenv("TESSERA_LAYOUT_PAIRS");
  const std::int64_t pairs = asked == nullptr ? 10'000 : std::atoll(asked);
  const Machine machine =
      parse_machine("core=10GB/s+0us socket=10GB/s+0us host=10GB/s+0us rack=10GB/s+0us");
  const std::int64_t kRanks[] = {2, 4, 6, 8, 12, 16, 24, 32, 64};
  const std::int64_t kSizes[] = {2, 4, 6, 8, 16, 48, 64, 512, 768, 1024, 4096};
  Draw draw(20261122);
  Tally tally;
  std::int64_t more = 0;
  while (tally.pairs < pairs) {
    const std::int64_t ranks = kRanks[draw.below(std::size(kRanks))];
    std::vector<std::int64_t> shape;
    for (std::size_t d = 1 + draw.below(3); d > 0; --d)
      shape.push_back(kSizes[draw.below(std::size(kSizes))]);
    const DeviceMatrix first = draw.matrix(ranks);
    const DeviceMatrix second = draw.below(2) == 0 ? first : draw.matrix(ranks);
    const TensorLayout from = draw.layout(first, shape), to = draw.layout(second, shape);
    std::optional<RefinedMatrix> refined;
    try {
      refined.emplace(std::vector<DeviceMatrix>{first, second});
    } catch (const Error&) {
      continue;  // (2, 3) and (3, 2) have no common refinement: refused here
    }
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < refined->sizes().size(); ++i)
      axes.push_back({text("d", i), refined->sizes()[i], Level::Core});
    const Mesh mesh(axes);
    Redistributor redistributor(mesh, machine);
    const Shape logical{std::span<const std::int64_t>(shape)};
    const Sharding begin = sharding_of(from, *refined), end = sharding_of(to, *refined);
    const Redistribution& plan = redistributor.plan(logical, DType::F32, begin, end);
    const std::int64_t ours = plan.bytes();
    const std::int64_t gathered = their_bytes(from, to, shape, false),
                       exchanged = their_bytes(from, to, shape, true);
    const std::int64_t theirs = std::min(gathered, exchanged);
    ++tally.pairs;
    if (ours > theirs && ++more <= 5) {
      ADD_FAILURE() << text(logical, " on ", mesh, " from ", begin, " to ", end, ": ours ", ours,
                            " (", join(plan.moves, "; "), "), theirs ", gathered,
                            ", with all_to_all ", exchanged);
    }
    const auto count = [&](std::int64_t bytes, std::int64_t& fewer, double& logs, double& most) {
      if (ours < bytes) ++fewer;
      if (ours == 0 || bytes == 0) return;
      const double ratio = static_cast<double>(bytes) / static_cast<double>(ours);
      logs += std::log(ratio);
      most = std::max(most, ratio);
    };
    count(gathered, tally.fewer, tally.log_ratio, tally.most);
    count(exchanged, tally.with_all_to_all_fewer, tally.all_to_all_log_ratio,
          tally.all_to_all_most);
  }
  const auto mean = [&](double logs) { return std::exp(logs / static_cast<double>(tally.pairs)); };
  std::printf(
      "%lld pairs, more in %lld; theirs receive more in %lld (mean ratio %.2f, most %.1f), "
      "with all_to_all in %lld (%.2f, %.1f)\n",
      static_cast<long long>(tally.pairs), static_cast<long long>(more),
      static_cast<long long>(tally.fewer), mean(tally.log_ratio), tally.most,
      static_cast<long long>(tally.with_all_to_all_fewer), mean(tally.all_to_all_log_ratio),
      tally.all_to_all_most);
  EXPECT_EQ(more, 0);
}

}  // namespace
}  // namespace tessera::test
