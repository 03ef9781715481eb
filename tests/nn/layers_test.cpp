/// Layers and schedules: positions by their formula, what cannot be built.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tessera/nn/layers.h"
#include "tessera/nn/optimizer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {
namespace {

/// Types of graphs are exact too: a result with more bytes than 2^62 is refused where it is made.
TEST(Layers, ATensorThatCannotExistIsRefused) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {1LL << 30, 1}, {}}),
              y = builder.batch("y", {DType::F32, {1, 1LL << 31}, {}});
  EXPECT_THROW(x + y, Error);
  EXPECT_THROW(builder.batch("z", {DType::F32, {1LL << 40, 1LL << 40}, {}}), Error);
}

TEST(Layers, SinusoidalPositionsAreTheirFormula) {
  constexpr std::int64_t kLength = 5, kWidth = 6;
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {1, kLength, kWidth}, {}});
  builder.output(Output::Kind::Metric, "y", sinusoidal_positions(x));
  Bindings in;
  in.batch.emplace("x", HostTensor(DType::F32, {1, kLength, kWidth}));
  Interpretation how;
  how.f64 = true;
  const HostTensor y = interpret(builder.finish(), in, how)[0];
  for (std::int64_t t = 0; t < kLength; ++t) {
    for (std::int64_t i = 0; i < kWidth / 2; ++i) {
      const double angle =
          static_cast<double>(t) / std::pow(10'000.0, 2.0 * static_cast<double>(i) / kWidth);
      EXPECT_NEAR(y.at(t * kWidth + i), std::sin(angle), 1e-12);
      EXPECT_NEAR(y.at(t * kWidth + kWidth / 2 + i), std::cos(angle), 1e-12);
    }
  }
}

TEST(Layers, ALongSequenceNeedsALongContext) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {1, 9, 4}, {}});
  EXPECT_THROW(learned_positions(x, "position", 8), Error);
}

/// The fans of a layer's weight are those of its shape; a bias has none.
TEST(Layers, TakeAnyFirstValue) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {2, 6}, {}}),
              ids = builder.batch("ids", {DType::I32, {2}, {}});
  linear(x, "he", 3, {.init = he_normal_init(), .bias_init = uniform_init(0.1)});
  linear(x, "standard", 3);
  embedding(ids, "table", 5, 4, truncated_normal_init(0.5));
  learned_positions(reshape(x, {1, 2, 6}), "position", 2, xavier_uniform_init());
  std::map<std::string, Init> first;
  for (const State& state : builder.so_far().states()) first[state.path] = state.init;
  const std::map<std::string, Init> expected = {
      {"he.weight", {Init::Kind::Normal, std::sqrt(2.0) / std::sqrt(6.0)}},
      {"he.bias", {Init::Kind::Uniform, 0.1}},
      {"standard.weight", {Init::Kind::Normal, 0.02}},
      {"standard.bias", {Init::Kind::Constant, 0}},
      {"table.weight", {Init::Kind::TruncatedNormal, 0.5}},
      {"position.weight", xavier_uniform_init().of({2, 6})}};
  EXPECT_EQ(first, expected);
}

TEST(Schedule, StepsTimesSamplesDoNotWrap) {
  const ScheduleConfig config{ScheduleKind::Linear, 1.0, 0.1, 0, 1'000'000'000'000'000};
  Builder builder;
  const Value samples = builder.batch("n", {DType::I64, {}, {}});
  builder.output(Output::Kind::Metric, "lr", learning_rate(samples, config, 1'000'000'000));
  Bindings in;
  in.batch.emplace("n", HostTensor::scalar(std::int64_t{1000}));
  EXPECT_NEAR(interpret(builder.finish(), in)[0].at(0), 1.0, 1e-9);
}

/// Megatron's schedule in samples: the first step of a warm-up runs at 0, the decay ends at its
/// last step.
TEST(Schedule, WarmUpAndDecay) {
  struct Case {
    ScheduleKind kind;
    double samples, lr;
  };
  const ScheduleConfig base{ScheduleKind::Cosine, 1.0, 0.1, 4,
                            12};  // batch 10: warm-up 40, decay 120 samples
  const Case cases[] = {{ScheduleKind::Cosine, 0, 0.0},    {ScheduleKind::Cosine, 20, 0.5},
                        {ScheduleKind::Cosine, 40, 1.0},   {ScheduleKind::Cosine, 80, 0.55},
                        {ScheduleKind::Cosine, 120, 0.1},  {ScheduleKind::Cosine, 500, 0.1},
                        {ScheduleKind::Linear, 60, 0.775}, {ScheduleKind::Constant, 500, 1.0}};
  for (const Case& c : cases) {
    ScheduleConfig config = base;
    config.kind = c.kind;
    Builder builder;
    const Value samples = builder.batch("n", {DType::I64, {}, {}});
    builder.output(Output::Kind::Metric, "lr", learning_rate(samples, config, 10));
    Bindings in;
    in.batch.emplace("n", HostTensor::scalar(static_cast<std::int64_t>(c.samples)));
    EXPECT_NEAR(interpret(builder.finish(), in)[0].at(0), c.lr, 1e-12) << c.samples;
  }
}

}  // namespace
}  // namespace tessera
