/// The encoder-decoder Transformer (Vaswani et al. 2017), with a choice of norms before or after
/// each part, of positions and of the activation, as torch.nn.Transformer has it.

#include <cmath>

#include "tessera/models/layer.h"
#include "tessera/models/translation.h"
#include "tessera/nn/transformer_stack.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr TensorCut kTargetCuts[] = {{"embed_target.token.weight", 0, 2, /*table=*/true}};

TransformerConfig stacks_of(const ModelConfig& c) {
  TransformerConfig out;
  out.layer = layer_of(c);
  out.layer.post_norm = c.post_norm;
  out.encoder_layers = c.layers, out.decoder_layers = c.decoder();
  return out;
}

/// Rows of the `table`, or of one that is made here where that is empty, and positions. `first`:
/// the position of the first; empty: 0.
EmbeddingResult embedded(const ModelConfig& c, std::string_view block, Value ids, Value table,
                         std::int64_t positions, Value first, const Pass& pass) {
  const Scope scope(ids.builder(), block);
  EmbeddingResult out;
  if (table.valid()) {
    out = {gather(ids, table), table};
  } else {
    out = embedding(ids, "token", c.vocabulary, c.width, init_of(c));
  }
  // Sines have a size of their own, next to which rows of the table would be small: Vaswani et al.,
  // section 3.4.
  const double scale = std::sqrt(static_cast<double>(c.width));
  out.rows = c.sinusoidal ? sinusoidal_positions(out.rows * scale, first)
                          : learned_positions(out.rows, "position", positions, init_of(c), first);
  out.rows = dropout_layer(out.rows, c.dropout, pass.step, "dropout");
  ids.builder().set_name(out.rows, "residual");
  return out;
}

void find_transformer_problems(const ModelConfig& c, FieldProblems& problems) {
  constexpr std::string_view kKnown[] = {"gelu", "relu"};
  find_activation_problems(c, kKnown, problems);
  find_token_problems(c, problems);
  // In training a target's tokens see no padding.
  if (!c.special_tokens.empty() && translation_tokens(c).start == translation_tokens(c).pad)
    problems.add({"special-tokens", "family"},
                 text("special-tokens is ", c.special_tokens, "; of family ", c.family,
                      " the start must be another one than padding, which no token sees"));
  if (c.sinusoidal && c.width % 2 != 0)
    problems.add({"width", "sinusoidal-positions"},
                 text("sines as positions need an even width; it is ", c.width));
}

constexpr ReadField kTransformerReads[] = {{"layers", "those of the encoder"},
                                           {"heads"},
                                           {"kv-heads"},
                                           {"width"},
                                           {"ffn-width"},
                                           {"context"},
                                           {"positions", "of targets"},
                                           {"vocab-size"},
                                           {"special-tokens"},
                                           {"dropout"},
                                           {"attention-dropout"},
                                           {"decoder-layers"},
                                           {"source-context"},
                                           {"bias"},
                                           {"tied-head"},
                                           {"shared-embedding"},
                                           {"sinusoidal-positions"},
                                           {"post-norm"},
                                           {"activation"},
                                           {"norm-eps"},
                                           {"init-std"}};

std::vector<std::string_view> transformer_changes(const ModelConfig& c) {
  if (!c.sinusoidal) return {};
  return {"embeddings are multiplied by sqrt(width) where positions are sines"};
}

/// The stacks, with residual weights scaled for one that adds so many parts to its stream.
TransformerConfig stacks_of(const ModelConfig& c, std::int64_t parts) {
  TransformerConfig out = stacks_of(c);
  if (!c.post_norm) out.layer.residual_init = residual_init(init_of(c), parts);
  return out;
}

/// What the encoder makes of a source, and its table of tokens.
struct ReadSource {
  Encoded encoded;
  Value table;
};

ReadSource read_source(const ModelConfig& c, Value source, const Pass& pass) {
  const Visible of_source = visible_source(c, source, pass);
  const EmbeddingResult from =
      embedded(c, "embed", source, {}, c.most_source_positions(), {}, pass);
  return {{transformer_encoder(from.rows, stacks_of(c, 2 * c.layers), of_source, pass), of_source},
          from.table};
}

/// What the decoder makes of ids. `table`: that of the source, where the two share one.
Value decoded(const ModelConfig& c, Value ids, Value table, const Encoded& encoded,
              const Visible& of_ids, const Pass& pass) {
  Builder& builder = ids.builder();
  const EmbeddingResult to =
      embedded(c, "embed_target", ids, table, c.most_positions(), pass.position, pass);
  Value x = transformer_decoder(to.rows, encoded, stacks_of(c, 3 * c.decoder()), of_ids, pass);
  if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
  if (!c.tied_head) return linear(x, "head", c.vocabulary, {false, init_of(c)});
  const Scope scope(builder, "head");
  return matmul(x, to.table, {.trans_b = true});
}

}  // namespace

extern constinit const TranslationModel kTransformerModel = {
    .logits = [](const ModelConfig& c, Value source, Value ids, const Pass& pass) -> Value {
      const ReadSource from = read_source(c, source, pass);
      const Value pad = ids.builder().constant(translation_tokens(c).pad, DType::I32);
      return decoded(c, ids, c.shared_embedding ? from.table : Value(), from.encoded,
                     {.causal = true, .mask = not_equal(ids, pad)}, pass);
    },
    .read_source = [](const ModelConfig& c, Value source) -> void {
      keep_for_decoder(read_source(c, source, {}).encoded, c.width, stacks_of(c));
    },
    .next = [](const ModelConfig& c, Value ids, const Pass& pass) -> Value {
      const Value table = c.shared_embedding ? token_table(c, ids.builder(), init_of(c)) : Value();
      return decoded(c, ids, table, {.kept = c.source()}, {.causal = true}, pass);
    },
};

constexpr FamilyTask kTransformerTasks[] = {
    {kSeq2SeqLm, [](const ModelConfig& config) { return translation(config, kTransformerModel); }}};

extern constinit const ModelFamily kTransformer = {
    .name = "transformer",
    .doc = "encoder and decoder, for translation; norms before or after, ReLU or GELU",
    .reads = kTransformerReads,
    .tasks = kTransformerTasks,
    .find_problems = find_transformer_problems,
    .changes = transformer_changes,
    .stacks = stacks_of_pairs,
    .cuts = kTargetCuts,
    .special_tokens = kTranslationTokens,
};

}  // namespace tessera
