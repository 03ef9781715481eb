/// GPT-2 (Radford et al. 2019): pre-norm blocks, learned positions, GELU (tanh form), the head tied
/// to the embedding.

#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"

namespace tessera {

Value gpt2(const ModelConfig& c, Value ids, Value step) {
  Builder& builder = ids.builder();
  Value x, token;
  {
    const Scope scope(builder, "embed");
    const EmbeddingResult embedded = embedding(ids, "token", c.vocabulary, c.width, c.init_std);
    token = embedded.weight;
    x = learned_positions(embedded.rows, "position", c.context, c.init_std);
    x = dropout_layer(x, c, step, "dropout");
    builder.set_name(x, "residual");
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope scope(builder, text("layers.", i));
    x = x + multi_head_attention(layer_norm_layer(x, "norm1", c.norm_eps, c.bias), c,
                                 /*rotary=*/false, step);
    builder.set_name(x, "residual");
    const Value y =
        feed_forward(layer_norm_layer(x, "norm2", c.norm_eps, c.bias), c, FeedForward::Gelu);
    x = x + dropout_layer(y, c, step, "mlp_dropout");
    builder.set_name(x, "residual");
  }
  x = layer_norm_layer(x, "norm", c.norm_eps, c.bias);
  if (c.tied_head) {
    const Scope scope(builder, "head");
    return matmul(x, token, {.trans_b = true});
  }
  return linear(x, "head", c.vocabulary, {false, c.init_std});
}

}  // namespace tessera
