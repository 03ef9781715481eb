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

/// The fewest likeliest tokens whose probabilities reach top-p: of 0.5, 0.3 and 0.2.
TEST(Draw, TopP) {
  const std::vector<double> logits = {std::log(2.0), std::log(5.0), std::log(3.0)};
  const double last = 1 - 0x1p-53;
  struct Case {
    double top_p;
    std::int64_t top_k;
    std::int32_t least;  // the least likely that is drawn
  };
  for (const Case& c : {Case{1e-9, 0, 1},
                        {0.49, 0, 1},
                        {0.5, 0, 1},
                        {0.51, 0, 2},
                        {0.79, 0, 2},
                        {0.81, 0, 0},
                        {1.0, 2, 2},
                        {0.6, 2, 1},
                        {0.7, 2, 2}}) {
    GenerateOptions options;
    options.temperature = 1;
    options.top_p = c.top_p;
    options.top_k = c.top_k;
    EXPECT_EQ(draw(logits, options, last), c.least) << c.top_p << " " << c.top_k;
    EXPECT_EQ(draw(logits, options, 0), 1) << "the likeliest first";
  }
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
  options.top_p = 0;
  EXPECT_EQ(problems(options).size(), 4u);
}

}  // namespace
}  // namespace tessera
