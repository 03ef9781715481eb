/// The encoder-decoder Transformer (Vaswani et al. 2017), with a choice of norms before or after
/// each part, of positions and of the activation, as torch.nn.Transformer has it.

#include "tessera/models/layer.h"
#include "tessera/models/translation.h"
#include "tessera/nn/transformer_stack.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"

namespace tessera {

namespace {

constexpr std::string_view kRelu = "relu", kGelu = "gelu";
constexpr TensorCut kTargetCuts[] = {{"embed_target.token.weight", 0, 2, /*table=*/true}};

std::int64_t decoder_layers(const ModelConfig& c) {
  return c.decoder_layers == 0 ? c.layers : c.decoder_layers;
}

TransformerConfig stacks_of(const ModelConfig& c) {
  TransformerConfig out;
  out.layer = layer_of(c);
  out.layer.feed_forward = c.activation == kGelu ? FeedForward::GeluErf : FeedForward::Relu;
  out.encoder_layers = c.layers, out.decoder_layers = decoder_layers(c);
  return out;
}

/// Rows of the `table`, or of one that is made here where that is empty, and positions.
EmbeddingResult embedded(const ModelConfig& c, std::string_view block, Value ids, Value table,
                         std::int64_t positions, const Pass& pass) {
  const Scope scope(ids.builder(), block);
  EmbeddingResult out;
  if (table.valid()) {
    out = {gather(ids, table), table};
  } else {
    out = embedding(ids, "token", c.vocabulary, c.width, init_of(c));
  }
  out.rows = c.sinusoidal ? sinusoidal_positions(out.rows)
                          : learned_positions(out.rows, "position", positions, init_of(c));
  out.rows = dropout_layer(out.rows, c.dropout, pass.step, "dropout");
  ids.builder().set_name(out.rows, "residual");
  return out;
}

void find_transformer_problems(const ModelConfig& c, std::vector<std::string>& problems) {
  if (c.activation != kRelu && c.activation != kGelu)
    problems.push_back(text("activation is '", c.activation, "'; it can be ", kGelu, ", ", kRelu));
  if (c.sinusoidal && c.width % 2 != 0)
    problems.push_back(text("sines as positions need an even width; it is ", c.width));
}

}  // namespace

Value transformer_logits(const ModelConfig& c, Value source, Value ids, const Pass& pass) {
  Builder& builder = ids.builder();
  const Value pad = builder.constant(translation_tokens(c).pad, DType::I32);
  const Visible of_source{.mask = not_equal(source, pad)};
  TransformerConfig stacks = stacks_of(c);
  const auto scale = [&](std::int64_t parts) {
    if (!c.post_norm) stacks.layer.residual_init = residual_init(init_of(c), parts);
  };
  scale(2 * stacks.encoder_layers);
  const EmbeddingResult from = embedded(c, "embed", source, {}, c.source(), pass);
  const Value encoded = transformer_encoder(from.rows, stacks, of_source, pass);
  // Behind the encoder, so that in a pipeline it is computed where the decoder begins.
  scale(3 * stacks.decoder_layers);
  const EmbeddingResult to = embedded(
      c, "embed_target", ids, c.shared_embedding ? from.table : Value(), c.most_positions(), pass);
  const Value x = transformer_decoder(to.rows, {encoded, of_source}, stacks,
                                      {.causal = true, .mask = not_equal(ids, pad)}, pass);
  if (!c.tied_head) return linear(x, "head", c.vocabulary, {false, init_of(c)});
  const Scope scope(builder, "head");
  return matmul(x, to.table, {.trans_b = true});
}

constinit const ModelFamily kTransformer = {
    .name = "transformer",
    .doc = "encoder and decoder, for translation; norms before or after, ReLU or GELU",
    .task = [](const ModelConfig& config) { return translation(config, transformer_logits); },
    .find_problems = find_transformer_problems,
    .stacks = [](const ModelConfig& c) -> std::vector<LayerStack> {
      return {{"encoder.layers", c.layers}, {"decoder.layers", decoder_layers(c), 2}};
    },
    .cuts = kTargetCuts,
    .special_tokens = kTranslationTokens,
};

}  // namespace tessera
