/// Sizes that would wrap are errors with their values.

#include "tessera/base/size.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tessera/base/divisors.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    return error.what();
  }
  return "";
}

TEST(Size, ProductsUpTo2To62) {
  EXPECT_EQ(size_product({}, "x"), 1);
  EXPECT_EQ(size_product({1LL << 31, 1LL << 31}, "x"), kMaxSize);
  EXPECT_EQ(size_product({1LL << 40, 1LL << 40, 0}, "x"), 0);
  EXPECT_EQ(message_of([] {
              size_product({1LL << 31, (1LL << 31) + 1}, "bytes of x");
            }),
            "bytes of x: 2147483648 x 2147483649 is above 2^62, more than any machine has; lower "
            "one of these numbers");
  EXPECT_NE(message_of([] { size_product({kMost, kMost, kMost}, "x"); }), "");
  EXPECT_NE(message_of([] { size_product({3, kMaxSize / 3 + 1}, "x"); }), "");
}

TEST(Size, SumsUpTo2To62) {
  EXPECT_EQ(size_sum(kMaxSize - 1, 1, "x"), kMaxSize);
  EXPECT_NE(message_of([] { size_sum(kMaxSize, 1, "x"); }), "");
  EXPECT_NE(message_of([] { size_sum(kMost, kMost, "x"); }), "");
}

TEST(Divisors, OfLargeNumbersAtOnce) {
  EXPECT_EQ(divisors(12), "1, 2, 3, 4, 6, 12");
  EXPECT_EQ(divisors(16, [](std::int64_t d) { return d > 2; }), "4, 8, 16");
  EXPECT_EQ(divisors(999'999'999'999'989), "1, 999999999999989");
}

}  // namespace
}  // namespace tessera
