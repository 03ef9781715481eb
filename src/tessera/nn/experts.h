#pragma once
/// Mixtures of experts: feed-forward parts of which each token reads some, which a router chooses.

#include <vector>

#include "tessera/nn/loss.h"
#include "tessera/nn/transformer.h"

namespace tessera {

/// The bias of a router, a state, which follows how many choices each expert has.
struct RouterBias {
  Value bias, tokens;  // [experts]
  double rate;
  /// bias + rate x sign(mean of tokens - tokens). Source: Wang et al. 2024, arXiv 2408.15664.
  Value next() const;
};

/// What routers of a model measure, a row a layer with experts.
struct Routing {
  /// [b] of f32: 1 for samples that count in means, 0 for others; empty: all count.
  Value counted = {};
  /// Of each group of samples alone: E sum over experts of the share of choices x the mean
  /// probability; 1 where both are even. Source: Fedus et al. 2021, arXiv 2101.03961, section 2.2; of
  /// sequences as DeepSeek-V3, arXiv 2412.19437, section 2.1.2. The choices are those by scores alone:
  /// before a bias, groups of experts and a capacity.
  std::vector<Mean> balance;
  /// Source: Zoph et al. 2022, arXiv 2202.08906, section 3.3.
  std::vector<Mean> z_loss;
  std::vector<Value> tokens;  // [experts] of f32: how many choices each has, those dropped included
  std::vector<Mean> dropped;  // the share of choices; empty: without a capacity
  std::vector<RouterBias> biases;
};

/// x [b, s, d] -> the same, of experts with the layer's activation and hidden width. Parameters:
/// router.weight [experts, d]; of experts up.weight and, where gated, gate.weight [experts, h, d],
/// down.weight [experts, d, h]; their biases [experts, h or d] and router.bias, where the layer's have
/// such; shared.up.weight, shared.gate.weight, shared.down.weight and
/// shared_gate.weight [1, d], residual.up.weight and so on, and coefficient.weight [2, d] with its
/// bias, where there are such. Buffer: router.expert_bias [experts]. pass.routing: what the router
/// measures is added to it. While text is written there is no capacity.
Value expert_feed_forward(Value x, const TransformerLayer& layer, const Pass& pass,
                          Where where = Where::here());

}  // namespace tessera
