#include "tessera/train/generate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

TEST(Draw, FollowsTheProbabilities) {
  const std::vector<double> logits = {std::log(1.0), std::log(2.0), std::log(5.0)};
  GenerateOptions options;
  options.temperature = 1;
  EXPECT_EQ(draw(logits, options, 0.0), 0);
  EXPECT_EQ(draw(logits, options, 0.124), 0) << "1 of 8";
  EXPECT_EQ(draw(logits, options, 0.126), 1) << "then 2 of 8";
  EXPECT_EQ(draw(logits, options, 0.374), 1);
  EXPECT_EQ(draw(logits, options, 0.376), 2);
  EXPECT_EQ(draw(logits, options, 1 - 0x1p-53), 2) << "never beyond the last";
  options.temperature = 0;
  EXPECT_EQ(draw(logits, options, 0.0), 2) << "temperature 0 is the likeliest";
  options.temperature = 1;
  options.top_k = 2;
  EXPECT_EQ(draw(logits, options, 0.0), 2) << "likeliest first";
  EXPECT_EQ(draw(logits, options, 0.99), 1) << "the third of two is out";
}

TEST(Draw, LargeLogitsDoNotOverflow) {
  GenerateOptions options;
  options.temperature = 0.01;
  EXPECT_EQ(draw({1e5, 0, -1e5}, options, 0.999), 0);
}

TEST(Generate, OptionsAreJudged) {
  GenerateOptions options;
  EXPECT_TRUE(problems(options).empty());
  options.tokens = 0;
  options.temperature = std::nan("");
  options.top_k = -1;
  EXPECT_EQ(problems(options).size(), 3u);
}

}  // namespace
}  // namespace tessera
