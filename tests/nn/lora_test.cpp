/// Adapters of one linear layer, against their formula.

#include "tessera/nn/lora.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nn/drawn_numbers.h"
#include "tessera/nn/optimizer.h"

namespace tessera {
namespace {

constexpr std::int64_t kInputs = 5, kHeadGroups = 2, kAtOnce = 2, kHeadWidth = 3;
constexpr std::int64_t kRowsOfGroup = (kAtOnce + 2) * kHeadWidth,
                       kOutputs = kHeadGroups * kRowsOfGroup;

/// The layer "qkv" of 4 rows, with every number of it drawn.
struct AdaptedLayer {
  explicit AdaptedLayer(const LoraConfig& lora) {
    Builder builder;
    const Value x = builder.batch("x", {DType::F32, {4, kInputs}, {}});
    const Value y =
        lora_linear({x}, "qkv", kOutputs, {}, lora, joined_rows("qkv", kAtOnce, kHeadWidth), {})[0];
    builder.output(Output::Kind::Metric, "y", y);
    graph = builder.finish();
    in = drawn_numbers(graph, {4, kInputs});
  }

  HostTensor run() const {
    Interpretation how;
    how.f64 = true;
    return interpret(graph, in, how)[0];
  }
  double at(const char* path, std::int64_t row, std::int64_t column) const {
    const HostTensor& tensor = in.states.at(path);
    return tensor.at(row * tensor.shape().back() + column);
  }
  /// x W^T + b of a row.
  double base(std::int64_t row, std::int64_t out) const {
    double sum = in.states.at("qkv.bias").at(out);
    for (std::int64_t i = 0; i < kInputs; ++i)
      sum += in.batch.at("x").at(row * kInputs + i) * at("qkv.weight", out, i);
    return sum;
  }
  /// (x A^T) B^T of a row and a row of B.
  double product(std::int64_t row, const std::string& of, std::int64_t out,
                 std::int64_t rank) const {
    double sum = 0;
    for (std::int64_t k = 0; k < rank; ++k) {
      double narrow = 0;
      for (std::int64_t i = 0; i < kInputs; ++i)
        narrow += in.batch.at("x").at(row * kInputs + i) * at((of + "lora_a").c_str(), k, i);
      sum += narrow * at((of + "lora_b").c_str(), out, k);
    }
    return sum;
  }

  Graph graph;
  Bindings in;
};

/// Queries and values have adapters of their own, keys none.
TEST(Lora, RowsOfEachPartAreThoseOfItsHeads) {
  const LoraConfig lora{.rank = 2, .alpha = 3};
  const AdaptedLayer layer(lora);
  const HostTensor y = layer.run();
  ASSERT_EQ(layer.in.states.at("qkv.q.lora_b").shape(),
            (Shape{kHeadGroups * kAtOnce * kHeadWidth, 2}));
  ASSERT_EQ(layer.in.states.at("qkv.v.lora_b").shape(), (Shape{kHeadGroups * kHeadWidth, 2}));
  EXPECT_FALSE(layer.in.states.contains("qkv.k.lora_a"));
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t out = 0; out < kOutputs; ++out) {
      const std::int64_t group = out / kRowsOfGroup, place = out % kRowsOfGroup,
                         queries = kAtOnce * kHeadWidth;
      double right = layer.base(row, out);
      if (place < queries) right += 1.5 * layer.product(row, "qkv.q.", group * queries + place, 2);
      if (place >= queries + kHeadWidth)
        right += 1.5 *
                 layer.product(row, "qkv.v.", group * kHeadWidth + place - queries - kHeadWidth, 2);
      EXPECT_NEAR(y.at(row * kOutputs + out), right, 1e-12) << row << " " << out;
    }
  }
}

TEST(Lora, OneAdapterOfAllRows) {
  const LoraConfig lora{.rank = 4, .alpha = 3, .rank_stabilized = true, .targets = {"qkv"}};
  const AdaptedLayer layer(lora);
  const HostTensor y = layer.run();
  for (std::int64_t row = 0; row < 4; ++row)
    for (std::int64_t out = 0; out < kOutputs; ++out)
      EXPECT_NEAR(y.at(row * kOutputs + out),
                  layer.base(row, out) + 1.5 * layer.product(row, "qkv.", out, 4), 1e-12);
}

/// The layer is m / ||W + scale B A|| (W + scale B A) x + b of the rows that have an adapter.
TEST(Lora, RowsHaveALengthOfTheirOwn) {
  constexpr double kScale = 1.5;
  for (const bool parts : {true, false}) {
    LoraConfig lora{.rank = 2, .alpha = 3, .decomposed = true, .targets = {parts ? "q" : "qkv"}};
    const AdaptedLayer layer(lora);
    const std::string of = parts ? "qkv.q." : "qkv.";
    const HostTensor y = layer.run();
    for (std::int64_t out = 0; out < kOutputs; ++out) {
      const std::int64_t place = out % kRowsOfGroup, queries = kAtOnce * kHeadWidth,
                         row_of = parts ? out / kRowsOfGroup * queries + place : out;
      const bool adapted = !parts || place < queries;
      double was = 0, now = 0;
      for (std::int64_t i = 0; i < kInputs; ++i) {
        double w = layer.at("qkv.weight", out, i);
        was += w * w;
        for (std::int64_t k = 0; k < 2; ++k)
          w += kScale * layer.at((of + "lora_b").c_str(), adapted ? row_of : 0, k) *
               layer.at((of + "lora_a").c_str(), k, i);
        now += w * w;
      }
      const double bias = layer.in.states.at("qkv.bias").at(out);
      for (std::int64_t row = 0; row < 4; ++row) {
        double right = layer.base(row, out);
        if (adapted) {
          const double m = std::sqrt(was) + layer.in.states.at(of + "lora_magnitude").at(row_of);
          right = bias +
                  m / std::sqrt(now) * (right - bias + kScale * layer.product(row, of, row_of, 2));
        }
        EXPECT_NEAR(y.at(row * kOutputs + out), right, 1e-12) << row << " " << out;
      }
    }
  }
}

/// Of a row of zeros there is no length to divide by; it begins as it was.
TEST(Lora, ARowOfZerosIsANumber) {
  AdaptedLayer layer({.rank = 2, .decomposed = true, .targets = {"qkv"}});
  for (const auto& [path, tensor] : layer.in.states)
    if (path.ends_with(".lora_b") || path.ends_with(".lora_magnitude"))
      for (std::int64_t i = 0; i < tensor.numel(); ++i) layer.in.states.at(path).set(i, 0);
  for (std::int64_t i = 0; i < kInputs; ++i) layer.in.states.at("qkv.weight").set(i, 0);
  const HostTensor y = layer.run();
  for (std::int64_t out = 0; out < kOutputs; ++out)
    EXPECT_NEAR(y.at(out), layer.base(0, out), 1e-12) << out;
}

/// B is zeros, so the model begins as it was; A is as PEFT's.
TEST(Lora, FirstValues) {
  const AdaptedLayer layer({.rank = 2});
  for (const State& state : layer.graph.states()) {
    if (state.path.ends_with("lora_b")) {
      EXPECT_EQ(state.init, Init());
    }
    if (!state.path.ends_with("lora_a")) continue;
    EXPECT_EQ(state.init.kind, Init::Kind::Uniform);
    EXPECT_DOUBLE_EQ(state.init.value, 1 / std::sqrt(5.0));
  }
  EXPECT_EQ((LoraConfig{.rank = 8}.scale()), 2);
  EXPECT_EQ((LoraConfig{.rank = 4, .alpha = 8, .rank_stabilized = true}.scale()), 4);
}

TEST(Lora, WhatIsFrozenStaysSo) {
  OptimizerConfig config;
  config.frozen = {"layers.0.*"};
  EXPECT_TRUE(trains(config, "embed.weight"));
  config.trained = {"*.lora_a", "score.*"};
  EXPECT_TRUE(trains(config, "layers.1.lora_a"));
  EXPECT_TRUE(trains(config, "score.weight"));
  EXPECT_FALSE(trains(config, "layers.0.lora_a"));
  EXPECT_FALSE(trains(config, "embed.weight"));
}

TEST(Lora, Problems) {
  const auto said = [](const LoraConfig& config) {
    std::string out;
    for (const FieldProblem& problem : problems(config)) out += problem.what + "\n";
    return out;
  };
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said({.rank = 8, .targets = {"all-linear"}}), "");
  EXPECT_NE(said({.rank = -1}).find("lora-rank is -1"), std::string::npos);
  EXPECT_NE(said({.rank = 4, .dropout = 1}).find("lora-dropout is 1"), std::string::npos);
  EXPECT_NE(said({.rank = 4, .alpha = -2}).find("lora-alpha is -2"), std::string::npos);
  EXPECT_NE(said({.rank = 4, .targets = {"q_proj"}}).find("lora-targets has 'q_proj'"),
            std::string::npos);
  EXPECT_NE(said({.rank = 4, .targets = {"qkv", "k"}}).find("lora-targets has qkv and k"),
            std::string::npos);
  EXPECT_NE(said({.alpha = 4}).find("lora-alpha does nothing without lora-rank"),
            std::string::npos);
  EXPECT_NE(said({.targets = {"q"}}).find("lora-targets does nothing without lora-rank"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
