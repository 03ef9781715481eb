#pragma once
/// Attention to keys and values that are products of a short vector of each token.

#include "tessera/nn/transformer.h"

namespace tessera {

/// Self-attention by LatentConfig, inside the block "attn" of self_attention, whose shapes it has. Of
/// its channels those that turn by position come first. Parameters, of h heads: q.weight [h (rotary +
/// plain), d], or q_a.weight [query_rank, d], q_a_norm.weight and q_b.weight [h (rotary + plain),
/// query_rank]; kv_a.weight [rotary + kv_rank, d], whose first rows make the part of keys that all
/// heads share; kv_a_norm.weight; kv_b.weight [h (plain + value), kv_rank]; proj.weight [d, h value].
/// The op `attention` reads values as wide as keys, which are filled up with zeros.
Value latent_attention(Value x, const TransformerLayer& layer, const Visible& visible,
                       const Pass& pass, Where where);

}  // namespace tessera
