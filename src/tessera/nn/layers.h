#pragma once
/// Layers: each declares its parameters under the block of its name and returns its result.

#include <string_view>

#include "tessera/nn/model.h"

namespace tessera {

struct LinearOptions {
  bool bias = true;
  double init_std = 0.02;
};
/// x W^T + b. Parameters: weight [out, in], bias [out]. Shapes: x [..., in] -> [..., out].
Value linear(Value x, std::string_view name, std::int64_t out, LinearOptions options = {},
             Where where = Where::here());

struct EmbeddingResult {
  Value rows, weight;
};
/// Rows of weight [rows, width] named by ids [...]: [..., width].
EmbeddingResult embedding(Value ids, std::string_view name, std::int64_t rows, std::int64_t width,
                          double init_std, Where where = Where::here());

/// Adds one learned vector per position to x [b, s, d]. Parameter: weight [context, d].
Value learned_positions(Value x, std::string_view name, std::int64_t context, double init_std,
                        Where where = Where::here());
/// Adds sines (channels [0, d/2)) and cosines (the rest) of positions to x [b, s, d], d even.
/// Source: Vaswani et al. 2017, arXiv 1706.03762, section 3.5, which interleaves the two.
Value sinusoidal_positions(Value x, double base = 10'000, Where where = Where::here());

/// Layer norm over the last dim. Parameters: weight [d] (ones), bias [d] (zeros) unless `bias` is
/// false.
Value layer_norm_layer(Value x, std::string_view name, double eps, bool bias = true,
                       Where where = Where::here());
/// RMS norm over the last dim. Parameter: weight [d] (ones).
Value rms_norm_layer(Value x, std::string_view name, double eps, Where where = Where::here());

/// Self-attention, causal, with grouped queries. Parameters: qkv.weight [(g (r+2) e), d], whose
/// rows hold, for each key-value head, its r query heads, its key and its value, so that heads can
/// be sharded; proj.weight [d, (g r e)].
Value multi_head_attention(Value x, const ModelConfig& config, bool rotary, Value step,
                           Where where = Where::here());

enum class FeedForward { Gelu, SwiGlu };
/// down(gelu(up(x))), or down(silu(gate(x)) * up(x)).
Value feed_forward(Value x, const ModelConfig& config, FeedForward kind,
                   Where where = Where::here());

/// Dropout with the model's rate; x itself where `step` is empty or the rate 0.
Value dropout_layer(Value x, const ModelConfig& config, Value step, std::string_view name,
                    Where where = Where::here());

}  // namespace tessera
