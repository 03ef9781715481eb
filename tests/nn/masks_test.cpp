/// Masks of attention and of the loss, against plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/nn/loss.h"
#include "tessera/nn/transformer.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/table.h"

namespace tessera {
namespace {

// Rows with padding at the end, before the tokens, between them, and with nothing else.
constexpr std::int64_t kRows = 5, kLength = 4;
constexpr std::array<int, kRows* kLength> kTokens = {1, 1, 1, 1,  //
                                                     1, 1, 0, 0,  //
                                                     0, 1, 1, 1,  //
                                                     1, 0, 1, 0,  //
                                                     0, 0, 0, 0};

HostTensor token_mask(DType dtype, double token) {
  HostTensor out(dtype, {kRows, kLength});
  for (std::size_t i = 0; i < kTokens.size(); ++i)
    out.set(static_cast<std::int64_t>(i), kTokens[i] == 1 ? token : 0);
  return out;
}

TEST(AttentionMask, IsCausalAndLeavesOutPadding) {
  for (const auto& [dtype, token] :
       {std::pair(DType::I32, 7.0), {DType::F32, 0.5}, {DType::Bool, 1.0}}) {
    SCOPED_TRACE(text(dtype));
    Builder builder;
    const Value mask = attention_mask(builder.batch("mask", {dtype, {kRows, kLength}, {}}));
    ASSERT_EQ(mask.shape(), (Shape{kRows, kLength, kLength}));
    ASSERT_EQ(mask.dtype(), DType::Bool);
    builder.output(Output::Kind::Metric, "mask", mask);
    Bindings in;
    in.batch.emplace("mask", token_mask(dtype, token));
    const HostTensor found = interpret(builder.finish(), in)[0];
    for (std::int64_t b = 0; b < kRows; ++b) {
      for (std::int64_t query = 0; query < kLength; ++query) {
        for (std::int64_t key = 0; key < kLength; ++key) {
          const auto is_token = [&](std::int64_t at) {
            return kTokens[static_cast<std::size_t>(b * kLength + at)] == 1;
          };
          EXPECT_EQ(found.at((b * kLength + query) * kLength + key) != 0,
                    is_token(query) && is_token(key) && key <= query)
              << b << " " << query << " " << key;
        }
      }
    }
  }
}

/// At tokens it is what a causal mask and a mask of the keys are together.
TEST(AttentionMask, IsTheMaskOfKeysAndPositionsAtTokens) {
  constexpr std::int64_t kWidth = 8;
  const auto attended_with = [](const auto& visible_of) {
    Builder builder;
    const Value x = builder.batch("x", {DType::F32, {kRows, kLength, kWidth}, {}}),
                tokens = builder.batch("mask", {DType::Bool, {kRows, kLength}, {}});
    const TransformerLayer layer{.heads = 2};
    builder.output(Output::Kind::Metric, "y", self_attention(x, layer, visible_of(tokens), {}));
    const Graph graph = builder.finish();
    Bindings in;
    in.batch.emplace("mask", token_mask(DType::Bool, 1));
    HostTensor numbers(DType::F32, {kRows, kLength, kWidth});
    for (std::int64_t i = 0; i < numbers.numel(); ++i)
      numbers.set(i, std::sin(static_cast<double>(i)));
    in.batch.emplace("x", numbers);
    for (const State& state : graph.states()) {
      HostTensor weight(graph.type(state.value));
      for (std::int64_t i = 0; i < weight.numel(); ++i)
        weight.set(i, std::cos(static_cast<double>(3 * i)));
      in.states.emplace(state.path, weight);
    }
    Interpretation how;
    how.f64 = true;
    return interpret(graph, in, how)[0];
  };
  const HostTensor y[] = {
      attended_with([](Value tokens) { return Visible{.mask = attention_mask(tokens)}; }),
      attended_with([](Value tokens) { return Visible{.causal = true, .mask = tokens}; })};
  for (std::int64_t i = 0; i < y[0].numel(); ++i) {
    if (kTokens[static_cast<std::size_t>(i / kWidth)] == 0) continue;
    EXPECT_NEAR(y[0].at(i), y[1].at(i), 1e-12) << i;
  }
}

/// A window of a layer is the mask of those pairs, by whatever way attention is computed.
TEST(Window, IsAMaskOfPairs) {
  constexpr std::int64_t kTokensInARow = 7, kWidth = 8, kWindow = 3;
  constexpr double kCap = 0.8;  // of scores, which grow as much by all ways
  struct Way {
    const char* name;
    bool causal, masked, biased, cached;
  };
  constexpr Way kWays[] = {
      {"causal, a mask", true, true, false, false},
      {"causal", true, false, false, false},
      {"causal, scores held", true, false, true, false},
      {"with caches", true, false, false, true},
      {"with caches, scores held", true, false, true, true},
      {"a mask", false, true, false, false},
      {"both sides", false, false, false, false},
      {"both sides, scores held", false, false, true, false},
  };
  HostTensor want;
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    const std::int64_t s = kTokensInARow;
    Builder builder;
    const Value x = builder.batch("x", {DType::F32, {1, s, kWidth}, {}});
    Visible visible{.causal = way.causal};
    if (way.masked) visible.mask = builder.batch("mask", {DType::Bool, {1, s, s}, {}});
    visible.slopes = builder.batch("slopes", {DType::F32, {2, 1}, {}});
    if (way.biased) visible.bias = broadcast_to(builder.constant(0, DType::F32), {2, s, s});
    Pass pass;
    if (way.cached) pass.position = builder.batch("position", {DType::I32, {}, {}}), pass.room = s;
    const TransformerLayer layer{
        .heads = 2, .attention_cap = kCap, .window = way.masked ? 0 : kWindow};
    builder.output(Output::Kind::Metric, "y", self_attention(x, layer, visible, pass));
    const Graph graph = builder.finish();
    Bindings in;
    HostTensor numbers(DType::F32, {1, s, kWidth}), mask(DType::Bool, {1, s, s});
    for (std::int64_t i = 0; i < numbers.numel(); ++i)
      numbers.set(i, std::sin(static_cast<double>(i)));
    for (std::int64_t i = 0; i < mask.numel(); ++i)
      mask.set(i, std::abs(i / s - i % s) < kWindow && (!way.causal || i % s <= i / s));
    in.batch.emplace("x", numbers);
    in.batch.emplace("slopes", HostTensor::of<float>({2, 1}, {0.5F, -0.25F}));
    if (way.masked) in.batch.emplace("mask", mask);
    if (way.cached) in.batch.emplace("position", HostTensor::scalar<std::int32_t>(0));
    for (const State& state : graph.states()) {
      HostTensor weight(graph.type(state.value));
      for (std::int64_t i = 0; i < weight.numel(); ++i)
        weight.set(i, std::cos(static_cast<double>(3 * i)));
      in.states.emplace(state.path, weight);
    }
    Interpretation how;
    how.f64 = true;
    const auto is_y = [](const Output& output) { return output.name == "y"; };
    const auto found = std::ranges::find_if(graph.outputs(), is_y);  // beside it are the caches
    const HostTensor y =
        interpret(graph, in, how)[static_cast<std::size_t>(found - graph.outputs().begin())];
    if (way.masked) want = y;
    for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(y.at(i), want.at(i), 1e-12) << i;
  }
}

TEST(AttentionMask, NeedsARowOfPositionsPerSample) {
  Builder builder;
  try {
    attention_mask(builder.batch("mask", {DType::I32, {2, 3, 4}, {}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the input mask is [2,3,4]; it must be [batch, "),
              std::string::npos)
        << error.what();
  }
}

/// sum(loss * mask) / sum(mask) in plain loops, with weights that are no whole numbers, and labels
/// that do not count.
TEST(MaskedCrossEntropy, IsItsFormula) {
  constexpr std::int64_t kCount = 6, kClasses = 5;
  HostTensor logits(DType::F64, {kCount, kClasses}), labels(DType::I32, {kCount}),
      mask(DType::F64, {kCount});
  const double weights[] = {1, 0, 0.25, 3, 0, 2};
  for (std::int64_t i = 0; i < kCount; ++i) {
    for (std::int64_t k = 0; k < kClasses; ++k)
      logits.set(i * kClasses + k, 3 * std::sin(static_cast<double>(i * kClasses + k)));
    labels.set(i, static_cast<double>(i * 2 % kClasses));
    mask.set(i, weights[i]);
  }
  labels.set(5, kIgnoredLabel);
  double sum = 0, count = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    double all = 0;
    for (std::int64_t k = 0; k < kClasses; ++k) all += std::exp(logits.at(i * kClasses + k));
    const double loss =
        std::log(all) - logits.at(i * kClasses + static_cast<std::int64_t>(labels.at(i)));
    sum += loss * weights[i], count += weights[i];
  }
  Builder builder;
  const Mean mean =
      cross_entropy_mean(builder.batch("logits", {DType::F32, {kCount, kClasses}, {}}),
                         builder.batch("labels", {DType::I32, {kCount}, {}}),
                         builder.batch("mask", {DType::F32, {kCount}, {}}));
  builder.output(Output::Kind::Metric, "loss", mean.value());
  builder.output(Output::Kind::Metric, "count", mean.count);
  Bindings in;
  in.batch = {{"logits", logits}, {"labels", labels}, {"mask", mask}};
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> found = interpret(builder.finish(), in, how);
  EXPECT_NEAR(found[0].at(0), sum / count, 1e-12);
  EXPECT_NEAR(found[1].at(0), 4.25, 1e-12);
}

TEST(MaskedCrossEntropy, TakesOneWeightPerLabel) {
  Builder builder;
  const Value logits = builder.batch("logits", {DType::F32, {2, 3, 5}, {}}),
              labels = builder.batch("labels", {DType::I32, {2, 3}, {}});
  try {
    cross_entropy_mean(logits, labels, builder.batch("mask", {DType::F32, {2}, {}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the mask is [2] and the labels are [2,3]"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tessera
