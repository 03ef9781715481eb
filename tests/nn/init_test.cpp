/// First values: how wide they are for a weight, and that what is drawn is what they say.

#include "tessera/nn/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/harness.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/verify.h"
#include "tessera/ops/table.h"

namespace tessera {
namespace {

TEST(Init, FansAreTorchs) {
  // torch.nn.init._calculate_fan_in_and_fan_out
  const struct {
    Shape weight;
    double in, out;
  } cases[] = {{{4, 6}, 6, 4}, {{8, 3, 5}, 15, 40}, {{2, 3, 5, 7}, 105, 70}, {{1, 1}, 1, 1}};
  for (const auto& c : cases) {
    SCOPED_TRACE(text(c.weight));
    const Fans fans = fans_of(c.weight);
    EXPECT_EQ(fans.in, c.in);
    EXPECT_EQ(fans.out, c.out);
  }
  for (const Shape& weight : {Shape{}, Shape{7}, Shape{0, 4}}) {
    try {
      he_normal_init().of(weight);
      ADD_FAILURE() << text(weight) << " has fans";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      EXPECT_NE(std::string(error.what()).find(text("a weight of shape ", weight)),
                std::string::npos)
          << error.what();
    }
  }
}

/// The numbers of torch.nn.init.kaiming_normal_, kaiming_uniform_, xavier_normal_ and
/// xavier_uniform_ by their formulas.
TEST(Init, WidthsAreTorchs) {
  const Shape matrix{4, 6}, convolution{2, 3, 5, 7};
  const struct {
    const char* name;
    Init init;
    Init::Kind kind;
    double value;
  } cases[] = {
      {"he normal", he_normal_init().of(matrix), Init::Kind::Normal, std::sqrt(2.0 / 6)},
      {"he normal, fan out", he_normal_init(Fan::Out).of(matrix), Init::Kind::Normal,
       std::sqrt(2.0 / 4)},
      {"he normal, linear", he_normal_init(Fan::In, 1).of(matrix), Init::Kind::Normal,
       std::sqrt(1.0 / 6)},
      {"he uniform", he_uniform_init().of(matrix), Init::Kind::Uniform, std::sqrt(6.0 / 6)},
      {"he uniform of a convolution", he_uniform_init(Fan::Out).of(convolution),
       Init::Kind::Uniform, std::sqrt(6.0 / 70)},
      {"xavier normal", xavier_normal_init().of(matrix), Init::Kind::Normal, std::sqrt(2.0 / 10)},
      {"xavier uniform", xavier_uniform_init().of(matrix), Init::Kind::Uniform,
       std::sqrt(6.0 / 10)},
      {"xavier uniform of a convolution, tanh", xavier_uniform_init(5.0 / 3).of(convolution),
       Init::Kind::Uniform, 5.0 / 3 * std::sqrt(6.0 / 175)},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(c.init.kind, c.kind);
    EXPECT_NEAR(c.init.value, c.value, 1e-15);
  }
}

/// A width that is given holds for any shape, and GPT-2's factor for the residual stream for any
/// distribution.
TEST(Init, AGivenWidthNeedsNoFans) {
  EXPECT_EQ(normal_init(0.02).of({7}), (Init{Init::Kind::Normal, 0.02}));
  EXPECT_EQ(truncated_normal_init(0.5).of({}), (Init{Init::Kind::TruncatedNormal, 0.5}));
  EXPECT_EQ(uniform_init(0.3).of({2, 3}), (Init{Init::Kind::Uniform, 0.3}));
  EXPECT_EQ(ones_init().of({4}), (Init{Init::Kind::Constant, 1}));
  EXPECT_EQ(zeros_init(), constant_init(0));
  EXPECT_EQ(residual_init(normal_init(0.02), 4).of({7}), (Init{Init::Kind::Normal, 0.01}));
  EXPECT_EQ(residual_init(xavier_uniform_init(), 4).of({2, 3, 5}),
            xavier_uniform_init(0.5).of({2, 3, 5}));
}

HostTensor first_of(const Init& init, const Shape& shape, const char* path = "w") {
  Builder builder;
  const Value first = first_value(builder, init, {DType::F32, shape, {}}, path);
  builder.output(Output::Kind::Metric, "first", first);
  return interpret(builder.finish(), {})[0];
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments moments_of(const HostTensor& x) {
  Moments out;
  const auto n = static_cast<double>(x.numel());
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    out.mean += x.at(i) / n;
    out.largest = std::max(out.largest, std::abs(x.at(i)));
  }
  for (std::int64_t i = 0; i < x.numel(); ++i)
    out.deviation += (x.at(i) - out.mean) * (x.at(i) - out.mean) / n;
  out.deviation = std::sqrt(out.deviation);
  return out;
}

TEST(Init, WhatIsDrawn) {
  constexpr std::int64_t kCount = 100'000;
  const double root = std::sqrt(static_cast<double>(kCount));
  const struct {
    const char* name;
    Init init;
    double deviation;
    double within;  // nothing is larger; and something is nearly as large
  } cases[] = {
      {"normal", {Init::Kind::Normal, 0.02}, 0.02, 0.02 * 5.5},
      {"uniform", {Init::Kind::Uniform, 0.3}, 0.3 / std::sqrt(3.0), 0.3},
      // sqrt(1 - 4 phi(2) / (2 Phi(2) - 1))
      {"truncated normal",
       {Init::Kind::TruncatedNormal, 0.02},
       0.02 * 0.8796256610342398,
       0.02 * 2},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const Moments m = moments_of(first_of(c.init, {kCount}));
    EXPECT_NEAR(m.mean, 0, 4 * c.deviation / root);
    EXPECT_NEAR(m.deviation, c.deviation, 4 * c.deviation / root);  // at most that of a normal
    EXPECT_LE(m.largest, c.within * (1 + 1e-7));
    EXPECT_GE(m.largest, c.within * 0.75);
  }
}

/// Of a truncated normal, what lies within is what the normal of that path is.
TEST(Init, TruncatingChangesWhatLiesBeyond) {
  const HostTensor whole = first_of({Init::Kind::Normal, 1}, {1000}),
                   cut = first_of({Init::Kind::TruncatedNormal, 1}, {1000});
  int redrawn = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    if (std::abs(whole.at(i)) <= 2) {
      EXPECT_EQ(cut.at(i), whole.at(i));
    } else {
      ++redrawn;
    }
  }
  EXPECT_NEAR(redrawn, 45.5, 4 * std::sqrt(45.5));
}

TEST(Init, DependsOnThePath) {
  for (const Init::Kind kind :
       {Init::Kind::Normal, Init::Kind::Uniform, Init::Kind::TruncatedNormal}) {
    const HostTensor a = first_of({kind, 1}, {64}, "a"), b = first_of({kind, 1}, {64}, "b");
    int same = 0;
    for (std::int64_t i = 0; i < 64; ++i) same += a.at(i) == b.at(i);
    EXPECT_LT(same, 3);
  }
}

TEST(Init, IsReadBackFromText) {
  Builder builder;
  const Init inits[] = {{Init::Kind::Constant, -1.5},
                        {Init::Kind::Normal, 0.02},
                        {Init::Kind::Uniform, 0.25},
                        {Init::Kind::TruncatedNormal, 0.5}};
  for (const Init& init : inits)
    builder.state(text("s", static_cast<int>(init.kind)), {DType::F32, {2}, {}}, Role::Parameter,
                  init);
  const Graph graph = builder.finish();
  const std::string printed = to_text(graph);
  EXPECT_NE(printed.find("uniform=0.25"), std::string::npos) << printed;
  EXPECT_NE(printed.find("truncated_normal=0.5"), std::string::npos) << printed;
  EXPECT_TRUE(parse_graph(printed, find_op) == graph);
}

TEST(Init, WhatCannotBeDrawnIsRefused) {
  const struct {
    TensorType type;
    Init init;
    const char* message;
  } cases[] = {
      {{DType::I32, {2}, {}},
       {Init::Kind::Uniform, 1},
       "what is drawn is f32 or rounded to 16 bits"},
      {{DType::F32, {2}, {}}, {Init::Kind::Normal, -1}, "a deviation or bound of -1"},
  };
  for (const auto& c : cases) {
    try {
      Builder builder;
      builder.state("s", c.type, Role::Parameter, c.init);
      verify(builder.finish());
      ADD_FAILURE() << c.message;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(c.message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
