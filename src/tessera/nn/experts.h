#pragma once
/// Mixtures of experts: feed-forward parts of which each token reads some, which a router chooses.
/// Nothing is dropped: a token has all experts that it chose, however many tokens chose the same.

#include <vector>

#include "tessera/nn/loss.h"
#include "tessera/nn/transformer.h"

namespace tessera {

/// What routers of a model measure, a row a layer with experts.
struct Routing {
  /// Of each sequence alone: E sum over experts of the share of choices x the mean probability; 1
  /// where both are even. Source: Fedus et al. 2021, arXiv 2101.03961, section 2.2; of sequences as
  /// DeepSeek-V3, arXiv 2412.19437, section 2.1.2.
  std::vector<Mean> balance;
  /// Source: Zoph et al. 2022, arXiv 2202.08906, section 3.3.
  std::vector<Mean> z_loss;
  std::vector<Value> tokens;  // [experts] of f32: how many choices each has
};

/// x [b, s, d] -> the same, of experts with the layer's activation and hidden width. Parameters:
/// router.weight [experts, d]; of experts up.weight and, where gated, gate.weight [experts, h, d],
/// down.weight [experts, d, h]; shared.up.weight, shared.gate.weight, shared.down.weight and
/// shared_gate.weight [1, d], where there are such. pass.routing: what the router measures is added to it.
Value expert_feed_forward(Value x, const TransformerLayer& layer, const Pass& pass,
                          Where where = Where::here());

}  // namespace tessera
