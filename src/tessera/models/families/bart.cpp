/// BART (Lewis et al. 2019, arXiv 1910.13461): an encoder-decoder with norms behind each part and
/// behind embeddings, learned positions, GELU and one table of tokens, which is its head too.
/// Transformers' form of it. It learns to write the target of a pair.

#include "tessera/models/families/bart.h"

#include <algorithm>
#include <cmath>

#include "tessera/models/denoising.h"
#include "tessera/models/layer.h"
#include "tessera/models/pair_classification.h"
#include "tessera/nn/transformer_stack.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

/// Rows of the tables of positions that nothing reads: published weights have them.
constexpr std::int64_t kUnreadRows = 2;

constexpr std::string_view kBartActivations[] = {"gelu", "gelu_new", "relu", "silu", "swish"};

TransformerConfig bart_stacks(const BartForm& form, const ModelConfig& c) {
  TransformerConfig out;
  out.layer = layer_of(c);
  out.layer.kv_heads = 0;
  out.layer.norm_eps = 1e-5;  // in transformers' too there is no other
  out.layer.post_norm = form.post_norm;
  out.layer.bias = true;
  out.layer.activation_dropout = c.dropout;
  out.decoder_layer = out.layer;
  out.decoder_layer->heads = c.heads_of_decoder();
  out.decoder_layer->ffn_width = c.hidden_of_decoder();
  out.last_norm = !form.post_norm;
  out.encoder_layers = c.layers, out.decoder_layers = c.decoder();
  return out;
}

Value source_table(const ModelConfig& c, Builder& builder) {
  return token_table(c, builder, init_of(c));
}
/// Made anew where the two stacks have not one.
Value target_table(const BartForm& form, const ModelConfig& c, Builder& builder, Value of_source) {
  if (form.two_tables && !c.shared_embedding)
    return token_table(c, builder, init_of(c), "embed_target");
  return of_source.valid() ? of_source : source_table(c, builder);
}

/// What a stack reads of ids, in the block `block`. `first`: the position of the first.
Value bart_embedded(const BartForm& form, const ModelConfig& c, std::string_view block, Value ids,
                    Value table, Value first, const Pass& pass) {
  const Scope scope(ids.builder(), block);
  Value x = gather(ids, table);
  if (c.scale_embedding) x = x * std::sqrt(static_cast<double>(c.width));
  x = form.sines ? sinusoidal_positions(x, first)
                 : learned_positions(x, "position", c.most_positions(), init_of(c), first, {},
                                     kUnreadRows);
  if (form.embedding_norm) x = norm(x, "norm", bart_stacks(form, c).layer);
  x = dropout_layer(x, c.dropout, pass.step, "dropout");
  ids.builder().set_name(x, "residual");
  return x;
}

Encoded bart_read(const BartForm& form, const ModelConfig& c, Value source, Value table,
                  const Pass& pass) {
  const Visible visible = visible_source(c, source, pass);
  const Value x = bart_embedded(form, c, "embed", source, table, {}, pass);
  return {transformer_encoder(x, bart_stacks(form, c), visible, pass), visible};
}

/// What the decoder makes of ids.
Value bart_target(const BartForm& form, const ModelConfig& c, Value ids, Value table,
                  const Encoded& encoded, const Pass& pass) {
  const Value x = bart_embedded(form, c, "embed_target", ids, table, pass.position, pass);
  return transformer_decoder(x, encoded, bart_stacks(form, c), {.causal = true}, pass);
}

/// Logits of what follows ids.
Value bart_decoded(const BartForm& form, const ModelConfig& c, Value ids, Value table,
                   const Encoded& encoded, const Pass& pass) {
  Builder& builder = ids.builder();
  Value x = bart_target(form, c, ids, table, encoded, pass);
  if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
  const Scope scope(builder, "head");
  const Value logits = matmul(x, table, {.trans_b = true});
  if (!form.logit_bias) return logits;
  const Shape shape{c.vocabulary};
  return logits + stop_gradient(builder.state("bias", {DType::F32, shape, {}}, Role::Parameter,
                                              zeros_init().of(shape)));
}

/// A text begins with <s>; what is written begins behind the end of another one.
std::string bart_tokens_of(const Vocabulary& vocabulary) {
  if (vocabulary.made_elsewhere() == nullptr) return "";
  const SpecialTokens& has = vocabulary.made_elsewhere()->special_tokens();
  if (!has.pad || !has.bos || !has.eos) return "";
  return to_text(TranslationTokens{*has.pad, *has.eos, *has.eos, *has.bos});
}

}  // namespace

Value bart_logits(const BartForm& form, const ModelConfig& c, Value source, Value ids,
                  const Pass& pass) {
  const Value from = source_table(c, source.builder());
  const Value to = target_table(form, c, source.builder(), from);
  return bart_decoded(form, c, ids, to, bart_read(form, c, source, from, pass), pass);
}

void read_bart_source(const BartForm& form, const ModelConfig& c, Value source) {
  const Value table = source_table(c, source.builder());
  keep_for_decoder(bart_read(form, c, source, table, {}), c.width, bart_stacks(form, c));
}

Value next_of_bart(const BartForm& form, const ModelConfig& c, Value ids, const Pass& pass) {
  const Value table = target_table(form, c, ids.builder(), {});
  return bart_decoded(form, c, ids, table, {.kept = c.source()}, pass);
}

void find_bart_problems(const BartForm& form, const ModelConfig& c, FieldProblems& problems) {
  find_token_problems(c, problems);
  find_activation_problems(c, kBartActivations, problems);
  if (c.source() > c.most_positions())
    problems.add(
        {"source-context", "positions"},
        text("source-context is ", c.source(), " and there are ", c.most_positions(),
             " positions, of a source as of a target; give positions of at least ", c.source()));
  if (form.sines && c.width % 2 != 0)
    problems.add({"width"}, text("sines as positions need an even width; it is ", c.width));
}

extern constinit const TranslationModel kBartModel = kBartFormModel<BartForm{}>;

namespace {

TextClassifier bart_classifier(const ModelConfig& config) {
  const DecoderRows rows = [](const ModelConfig& c, Value source, Value ids, const Pass& pass) {
    constexpr BartForm kForm = {};
    const Value table = source_table(c, source.builder());
    return bart_target(kForm, c, ids, table, bart_read(kForm, c, source, table, pass), pass);
  };
  return pair_classifier(config, rows, init_of(config));
}

constexpr auto kBartOwnTasks =
    joined(std::array{kBartTasks<BartForm{}>[0], denoising_task<kBartModel, kTextInfilling>()},
           text_tasks<bart_classifier>(kClassifierReads, /*head=*/"classifier"));

}  // namespace

extern constinit const ModelFamily kBart = bart_family<BartForm{}>({
    .name = "bart",
    .doc = "encoder and decoder, for translation; post-norm, learned positions, GELU, one table",
    .tasks = kBartOwnTasks,
    .tokens_of = bart_tokens_of,
});

}  // namespace tessera
