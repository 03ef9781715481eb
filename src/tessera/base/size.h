#pragma once
/// Sizes that cannot wrap: every product and sum of counts that a user's numbers decide is computed
/// here.

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace tessera {

/// No machine has as many bytes; twice as many still fit into 64 bits.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 62;

/// Products and sums of sizes, none of which is negative. Errors: Fault::Usage: the result is above
/// kMaxSize; the message has `what` ("bytes of the logits") and the values.
std::int64_t size_product(std::initializer_list<std::int64_t> factors, std::string_view what);
std::int64_t size_sum(std::int64_t a, std::int64_t b, std::string_view what);

/// a * b; false where it is above kMaxSize. a, b >= 0.
constexpr bool size_product_fits(std::int64_t a, std::int64_t b) {
  return a == 0 || b <= kMaxSize / a;
}

}  // namespace tessera
