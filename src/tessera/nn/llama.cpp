/// LLaMA (Touvron et al. 2023): pre-norm blocks with RMS norm, rotary positions, SwiGLU, grouped
/// queries, no biases.

#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"

namespace tessera {

Value llama(const ModelConfig& config, Value ids, Value step) {
  ModelConfig c = config;
  c.bias = false;
  Builder& builder = ids.builder();
  Value x, token;
  {
    const Scope scope(builder, "embed");
    const EmbeddingResult embedded = embedding(ids, "token", c.vocabulary, c.width, c.init_std);
    token = embedded.weight;
    x = dropout_layer(embedded.rows, c, step, "dropout");
    builder.set_name(x, "residual");
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope scope(builder, text("layers.", i));
    x = x + multi_head_attention(rms_norm_layer(x, "norm1", c.norm_eps), c, /*rotary=*/true, step);
    builder.set_name(x, "residual");
    const Value y = feed_forward(rms_norm_layer(x, "norm2", c.norm_eps), c, FeedForward::SwiGlu);
    x = x + dropout_layer(y, c, step, "mlp_dropout");
    builder.set_name(x, "residual");
  }
  x = rms_norm_layer(x, "norm", c.norm_eps);
  if (c.tied_head) {
    const Scope scope(builder, "head");
    return matmul(x, token, {.trans_b = true});
  }
  return linear(x, "head", c.vocabulary, {false, c.init_std});
}

}  // namespace tessera
