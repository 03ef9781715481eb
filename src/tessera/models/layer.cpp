#include "tessera/models/layer.h"

#include "tessera/models/family.h"

namespace tessera {

WeightInit init_of(const ModelConfig& config) { return normal_init(config.init_std); }

TransformerLayer layer_of(const ModelConfig& config) {
  const LayerParts& parts = config.family->layer;
  const auto reads = [&](std::string_view field) { return reads_field(config, field); };
  const bool attention_bias = config.attention_bias && reads("attention-bias");
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_width = reads("head-width") ? config.head_width : 0,
          .ffn_width = config.hidden(),
          .feed_forward = parts.feed_forward,
          .norm = parts.norm,
          .norm_eps = config.norm_eps,
          .bias = config.bias && parts.bias,
          .qkv_bias = attention_bias || parts.qkv_bias,
          .proj_bias = attention_bias,
          .ffn_bias = config.ffn_bias && reads("ffn-bias"),
          .head_norm = parts.head_norm,
          .rotary = parts.rotary,
          .rope_base = config.rope_base,
          .attention_dropout = config.attention_rate(),
          .hidden_dropout = config.dropout,
          .init = init_of(config),
          .residual_init = init_of(config)};
}

}  // namespace tessera
