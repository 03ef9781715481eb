#include "tessera/models/layer.h"

namespace tessera {

WeightInit init_of(const ModelConfig& config) { return normal_init(config.init_std); }

TransformerLayer layer_of(const ModelConfig& config) {
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .ffn_width = config.hidden(),
          .norm_eps = config.norm_eps,
          .bias = config.bias,
          .rope_base = config.rope_base,
          .attention_dropout = config.attention_rate(),
          .hidden_dropout = config.dropout,
          .init = init_of(config),
          .residual_init = init_of(config)};
}

}  // namespace tessera
