#include "tessera/base/divisors.h"

#include "tessera/base/text.h"

namespace tessera {

std::vector<std::int64_t> divisors_of(std::int64_t n) {
  std::vector<std::int64_t> out, large;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    out.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  out.insert(out.end(), large.rbegin(), large.rend());
  return out;
}

std::string divisors(std::int64_t n, const std::function<bool(std::int64_t)>& fits) {
  std::vector<std::string> out;
  for (const std::int64_t d : divisors_of(n)) {
    if (!fits || fits(d)) out.push_back(text(d));
  }
  if (out.size() > 12) out.erase(out.begin() + 11, out.end() - 1);
  return join(out);
}

}  // namespace tessera
