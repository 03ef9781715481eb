#include "tessera/models/layer.h"

#include "tessera/models/family.h"

namespace tessera {

WeightInit init_of(const ModelConfig& config) { return normal_init(config.init_std); }

TransformerLayer layer_of(const ModelConfig& config) {
  TransformerLayer out = config.family->layer;
  const auto reads = [&](std::string_view field) { return reads_field(config, field); };
  const bool attention_bias = config.attention_bias && reads("attention-bias");
  out.heads = config.heads;
  out.kv_heads = config.kv_heads;
  if (reads("head-width")) out.head_width = config.head_width;
  out.ffn_width = config.hidden();
  out.norm_eps = config.norm_eps;
  out.bias = config.bias && out.bias;
  out.qkv_bias = attention_bias || out.qkv_bias;
  out.proj_bias = attention_bias || out.proj_bias;
  out.ffn_bias = (config.ffn_bias && reads("ffn-bias")) || out.ffn_bias;
  out.rope.base = config.rope_base;
  out.attention_dropout = config.attention_rate();
  out.hidden_dropout = config.dropout;
  out.init = out.residual_init = init_of(config);
  return out;
}

}  // namespace tessera
