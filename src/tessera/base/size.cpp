#include "tessera/base/size.h"

#include "tessera/base/error.h"

namespace tessera {

std::int64_t size_product(std::initializer_list<std::int64_t> factors, std::string_view what) {
  std::int64_t out = 1;
  bool fits = true;
  for (const std::int64_t factor : factors) {
    check(factor >= 0, "a factor of ", what, " is ", factor);
    if (factor == 0) return 0;
    fits = fits && size_product_fits(out, factor);
    if (fits) out *= factor;
  }
  if (!fits)
    fail(Fault::Usage, what, ": ", join(factors, " x "),
         " is above 2^62, more than any machine has; lower one of these numbers");
  return out;
}

std::int64_t size_sum(std::int64_t a, std::int64_t b, std::string_view what) {
  check(a >= 0 && b >= 0, "a term of ", what, " is negative: ", a, " + ", b);
  if (a > kMaxSize || b > kMaxSize - a)
    fail(Fault::Usage, what, ": ", a, " + ", b,
         " is above 2^62, more than any machine has; make the model or the batch smaller");
  return a + b;
}

}  // namespace tessera
