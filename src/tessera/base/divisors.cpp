#include "tessera/base/divisors.h"

#include <vector>

#include "tessera/base/text.h"

namespace tessera {

std::string divisors(std::int64_t n, const std::function<bool(std::int64_t)>& fits) {
  std::vector<std::int64_t> all, large;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    all.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  all.insert(all.end(), large.rbegin(), large.rend());
  std::vector<std::string> out;
  for (const std::int64_t d : all) {
    if (!fits || fits(d)) out.push_back(text(d));
  }
  if (out.size() > 12) out.erase(out.begin() + 11, out.end() - 1);
  return join(out);
}

}  // namespace tessera
