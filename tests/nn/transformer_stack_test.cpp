/// Stacks: who decides about layers, and in which order they come.

#include "tessera/nn/transformer_stack.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/ir/blocks.h"

namespace tessera {
namespace {

struct StackValues {
  Builder builder;
  Value source = builder.batch("source", {DType::F32, {2, 5, 8}, {}}),
        target = builder.batch("target", {DType::F32, {2, 3, 8}, {}});
};

TransformerConfig small_stacks(std::int64_t encoder, std::int64_t decoder) {
  TransformerConfig out;
  out.layer.heads = 2;
  out.encoder_layers = encoder, out.decoder_layers = decoder;
  return out;
}

Graph build_stacks(const TransformerConfig& config) {
  StackValues v;
  const Value y = transformer(v.source, v.target, config, {}, {.causal = true}, {});
  EXPECT_EQ(y.shape(), v.target.shape());
  v.builder.output(Output::Kind::Metric, "y", y);
  return v.builder.finish();
}

/// "encoder.layers.0 1": the stage of each block that has one.
std::vector<std::string> staged_blocks(const Graph& graph) {
  std::vector<std::string> out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const std::string line = text(block_of(node.block), " ", node.stage);
    if (node.stage >= 0 && (out.empty() || out.back() != line)) out.push_back(line);
  }
  return out;
}

TEST(TransformerStack, TheHookIsCalledForEachLayer) {
  std::vector<std::string> calls;
  TransformerConfig config = small_stacks(3, 2);
  config.lambda_func = [&](Scope& layer, std::int64_t layer_id, std::int64_t offset,
                           const TransformerConfig& of, std::int64_t layers) {
    calls.push_back(text(layer_id, "+", offset, " of ", layers, " in ", of.layers()));
    layer.stage(static_cast<int>(layer_id + offset) / 2);
    if (layer_id == 1) layer.recompute();
  };
  const Graph graph = build_stacks(config);
  EXPECT_EQ(calls, (std::vector<std::string>{"0+0 of 3 in 5", "1+0 of 3 in 5", "2+0 of 3 in 5",
                                             "0+3 of 2 in 5", "1+3 of 2 in 5"}));
  EXPECT_EQ(
      staged_blocks(graph),
      (std::vector<std::string>{"encoder.layers.0 0", "encoder.layers.1 0", "encoder.layers.2 1",
                                "decoder.layers.0 1", "decoder.layers.1 2"}));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view block = block_of(graph.node(id).block);
    if (block.empty()) continue;
    const bool again = block.ends_with(".1");
    EXPECT_EQ(graph.node(id).recompute, again ? Recompute::Full : Recompute::None) << block;
  }
}

/// min((layer + offset) // max(total / stages, 1), stages - 1), of which 7 layers on 3 stages give
/// 2, 2 and 3.
TEST(TransformerStack, LayersAreDividedEvenlyWhereStagesAreAskedFor) {
  TransformerConfig config = small_stacks(4, 3);
  EXPECT_TRUE(staged_blocks(build_stacks(config)).empty()) << "the compiler cuts";
  config.stages = 3;
  EXPECT_EQ(
      staged_blocks(build_stacks(config)),
      (std::vector<std::string>{"encoder.layers.0 0", "encoder.layers.1 0", "encoder.layers.2 1",
                                "encoder.layers.3 1", "decoder.layers.0 2", "decoder.layers.1 2",
                                "decoder.layers.2 2"}));
}

TEST(TransformerStack, WhatCannotBeBuiltIsNamed) {
  const auto refused = [](TransformerConfig config) -> std::string {
    try {
      build_stacks(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refused(small_stacks(2, 0)).find("has 0 layers; give it 1 or more"), std::string::npos);
  TransformerConfig config = small_stacks(1, 1);
  config.stages = 3;
  EXPECT_EQ(refused(config), "stages is 3 for 2 layers of encoder and decoder; give 1 to 2");
}

TEST(TransformerStack, BothStacksEndInANorm) {
  for (const bool post : {false, true}) {
    TransformerConfig config = small_stacks(1, 1);
    config.layer.post_norm = post;
    std::vector<std::string> norms;
    const Graph graph = build_stacks(config);
    for (const State& state : graph.states()) {
      if (state.path.ends_with("coder.norm.weight")) norms.push_back(state.path);
    }
    EXPECT_EQ(norms, (std::vector<std::string>{"encoder.norm.weight", "decoder.norm.weight"}));
  }
}

}  // namespace
}  // namespace tessera
