#include "tessera/train/step_bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// What another rank hears of a step has every bit of it, the means of its task and their names
/// included.
TEST(StepBytes, HasEveryBit) {
  StepRecord told{.step = std::int64_t{1} << 60,
                  .loss = 0.1,
                  .lr = 1e-300,
                  .grad_norm = std::numeric_limits<double>::infinity(),
                  .ok = false,
                  .seconds = 2.0 / 3,
                  .tokens_per_s = 1e9,
                  .place = {3, 17},
                  .means = {{"masked loss", -0.0}, {"", 5e-324}, {"order", 1.0 / 7}},
                  .loss_scale = 65536.0};
  for (const bool scaled : {true, false}) {
    if (!scaled) told.loss_scale.reset();
    const StepRecord heard = step_of_bytes(to_bytes(told));
    EXPECT_EQ(to_bytes(heard), to_bytes(told));
    EXPECT_EQ(heard.step, told.step);
    EXPECT_EQ(heard.lr, told.lr);
    EXPECT_EQ(heard.grad_norm, told.grad_norm);
    EXPECT_EQ(heard.ok, told.ok);
    EXPECT_EQ(heard.place.step, told.place.step);
    EXPECT_EQ(heard.means, told.means);
    EXPECT_TRUE(std::signbit(heard.means[0].second));
    EXPECT_EQ(heard.loss_scale, told.loss_scale);
  }
}

TEST(StepBytes, OtherBytesAreRefused) {
  const std::string bytes = to_bytes({.means = {{"loss", 1}}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(step_of_bytes(std::string_view(bytes).substr(0, size)), Broken) << size;
  EXPECT_THROW(step_of_bytes(bytes + "x"), Broken);
}

}  // namespace
}  // namespace tessera
