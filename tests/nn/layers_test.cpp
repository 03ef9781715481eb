/// Layers and models: parameters by name and shape, positions by their formula, configurations that
/// cannot be built.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/nn/layers.h"
#include "tessera/nn/optimizer.h"
#include "tessera/ops/interpret.h"

namespace tessera {
namespace {

std::vector<std::string> parameters_of(const ModelConfig& config) {
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {2, 4}, {}});
  const Value logits = find_model(config.family).logits(config, ids, {});
  EXPECT_EQ(logits.shape(), (Shape{2, 4, config.vocabulary}));
  std::vector<std::string> out;
  for (const State& state : builder.so_far().states()) {
    out.push_back(text(state.path, " ", builder.so_far().type(state.value).shape));
  }
  return out;
}

TEST(Models, GptParameters) {
  ModelConfig c;
  c.layers = 1, c.heads = 2, c.width = 8, c.context = 4, c.vocabulary = 11;
  const std::vector<std::string> expected = {"embed.token.weight [11,8]",
                                             "embed.position.weight [4,8]",
                                             "layers.0.norm1.weight [8]",
                                             "layers.0.norm1.bias [8]",
                                             "layers.0.attn.qkv.weight [24,8]",
                                             "layers.0.attn.qkv.bias [24]",
                                             "layers.0.attn.proj.weight [8,8]",
                                             "layers.0.attn.proj.bias [8]",
                                             "layers.0.norm2.weight [8]",
                                             "layers.0.norm2.bias [8]",
                                             "layers.0.mlp.up.weight [32,8]",
                                             "layers.0.mlp.up.bias [32]",
                                             "layers.0.mlp.down.weight [8,32]",
                                             "layers.0.mlp.down.bias [8]",
                                             "norm.weight [8]",
                                             "norm.bias [8]"};
  EXPECT_EQ(parameters_of(c), expected);
}

TEST(Models, LlamaParameters) {
  ModelConfig c;
  c.family = "llama", c.layers = 1, c.heads = 4, c.kv_heads = 2, c.width = 8, c.ffn_width = 12,
  c.context = 4;
  c.vocabulary = 11, c.tied_head = false;
  const std::vector<std::string> expected = {"embed.token.weight [11,8]",
                                             "layers.0.norm1.weight [8]",
                                             "layers.0.attn.qkv.weight [16,8]",
                                             "layers.0.attn.proj.weight [8,8]",
                                             "layers.0.norm2.weight [8]",
                                             "layers.0.mlp.gate.weight [12,8]",
                                             "layers.0.mlp.up.weight [12,8]",
                                             "layers.0.mlp.down.weight [8,12]",
                                             "norm.weight [8]",
                                             "head.weight [11,8]"};
  EXPECT_EQ(parameters_of(c), expected);
}

TEST(Models, ProblemsAreSentences) {
  ModelConfig c;
  c.heads = 3, c.width = 128, c.dropout = 1.5, c.layers = 0;
  const std::vector<std::string> expected = {
      "layers is 0; it must be 1 or more",
      "heads 3 do not divide the width 128; nearest widths are 126 and 129",
      "dropout is 1.5; it must be at least 0 and less than 1"};
  EXPECT_EQ(problems(c), expected);
  EXPECT_TRUE(problems(ModelConfig()).empty());
}

TEST(Models, AnUnknownFamilyNamesTheKnown) {
  try {
    find_model("bert");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown model family 'bert'; known are gpt2, llama");
  }
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
  EXPECT_THROW(learned_positions(x, "position", 8, 0.02), Error);
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
