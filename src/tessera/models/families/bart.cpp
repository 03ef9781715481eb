/// BART (Lewis et al. 2019, arXiv 1910.13461): an encoder-decoder with norms behind each part and
/// behind embeddings, learned positions, GELU and one table of tokens, which is its head too.
/// Transformers' form of it. It learns to write the target of a pair.

#include <cmath>

#include "tessera/models/layer.h"
#include "tessera/models/translation.h"
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

TransformerConfig bart_stacks(const ModelConfig& c) {
  TransformerConfig out;
  out.layer = layer_of(c);
  out.layer.kv_heads = 0;
  out.layer.norm_eps = 1e-5;  // in transformers' too there is no other
  out.layer.post_norm = out.layer.bias = true;
  out.layer.activation_dropout = c.dropout;
  out.layer.feed_forward = FeedForward::GeluErf;
  out.decoder_layer = out.layer;
  out.decoder_layer->heads = c.heads_of_decoder();
  out.decoder_layer->ffn_width = c.hidden_of_decoder();
  out.last_norm = false;
  out.encoder_layers = c.layers, out.decoder_layers = c.decoder();
  return out;
}

/// What a stack reads of ids, in the block of `scope`. `first`: the position of the first.
Value bart_embedded(const ModelConfig& c, Value ids, Value table, Value first, const Pass& pass) {
  Value x = gather(ids, table);
  if (c.scale_embedding) x = x * std::sqrt(static_cast<double>(c.width));
  x = learned_positions(x, "position", c.most_positions(), init_of(c), first, {}, kUnreadRows);
  x = dropout_layer(norm(x, "norm", bart_stacks(c).layer), c.dropout, pass.step, "dropout");
  ids.builder().set_name(x, "residual");
  return x;
}

Encoded bart_read(const ModelConfig& c, Value source, Value table, const Pass& pass) {
  const Visible visible = visible_source(c, source, pass);
  Value x;
  {
    const Scope scope(source.builder(), "embed");
    x = bart_embedded(c, source, table, {}, pass);
  }
  return {transformer_encoder(x, bart_stacks(c), visible, pass), visible};
}

/// Logits of what follows ids, by what the decoder makes of them.
Value bart_decoded(const ModelConfig& c, Value ids, Value table, const Encoded& encoded,
                   const Pass& pass) {
  Value x;
  {
    const Scope scope(ids.builder(), "embed_target");
    x = bart_embedded(c, ids, table, pass.position, pass);
  }
  x = transformer_decoder(x, encoded, bart_stacks(c), {.causal = true}, pass);
  if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
  const Scope scope(ids.builder(), "head");
  return matmul(x, table, {.trans_b = true});
}

constexpr ReadField kBartReads[] = {{"layers", "those of the encoder"},
                                    {"heads"},
                                    {"width"},
                                    {"ffn-width"},
                                    {"context"},
                                    {"positions", "of sources, and of targets"},
                                    {"vocab-size"},
                                    {"special-tokens"},
                                    {"dropout"},
                                    {"attention-dropout"},
                                    {"decoder-layers"},
                                    {"decoder-heads"},
                                    {"decoder-ffn-width"},
                                    {"source-context"},
                                    {"scale-embedding"},
                                    {"init-std"}};

void find_bart_problems(const ModelConfig& c, FieldProblems& problems) {
  find_token_problems(c, problems);
  if (c.source() > c.most_positions())
    problems.add(
        {"source-context", "positions"},
        text("source-context is ", c.source(), " and there are ", c.most_positions(),
             " positions, of a source as of a target; give positions of at least ", c.source()));
}

/// A text begins with <s>; what is written begins behind the end of another one.
std::string bart_tokens_of(const Vocabulary& vocabulary) {
  if (vocabulary.made_elsewhere() == nullptr) return "";
  const SpecialTokens& has = vocabulary.made_elsewhere()->special_tokens();
  if (!has.pad || !has.bos || !has.eos) return "";
  return to_text(TranslationTokens{*has.pad, *has.eos, *has.eos, *has.bos});
}

}  // namespace

extern constinit const TranslationModel kBartModel = {
    .logits = [](const ModelConfig& c, Value source, Value ids, const Pass& pass) -> Value {
      const Value table = shared_table(c, source.builder(), init_of(c));
      return bart_decoded(c, ids, table, bart_read(c, source, table, pass), pass);
    },
    .read_source = [](const ModelConfig& c, Value source) -> void {
      const Value table = shared_table(c, source.builder(), init_of(c));
      keep_for_decoder(bart_read(c, source, table, {}), c.width, bart_stacks(c));
    },
    .next = [](const ModelConfig& c, Value ids, const Pass& pass) -> Value {
      const Value table = shared_table(c, ids.builder(), init_of(c));
      return bart_decoded(c, ids, table, {.kept = c.source()}, pass);
    },
};

constexpr FamilyTask kBartTasks[] = {
    {kSeq2SeqLm, [](const ModelConfig& config) { return translation(config, kBartModel); }}};

extern constinit const ModelFamily kBart = {
    .name = "bart",
    .doc = "encoder and decoder, for translation; post-norm, learned positions, GELU, one table",
    .reads = kBartReads,
    .tasks = kBartTasks,
    .find_problems = find_bart_problems,
    .stacks = stacks_of_pairs,
    .special_tokens = kTranslationTokens,
    .tokens_of = bart_tokens_of,
};

}  // namespace tessera
