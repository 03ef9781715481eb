/// T5 (Raffel et al. 2019, arXiv 1910.10683): an encoder-decoder whose layers know positions by a
/// number for each head and distance, with RMS norms before each part and no biases. Version 1.0
/// has relu and a tied head, 1.1 gated GELU and a head of its own. Transformers' form of it.
///
/// Dropout is behind embeddings, in attention and in feed-forward parts, behind each part and at
/// the end of each stack.

#include <algorithm>
#include <cmath>

#include "tessera/base/size.h"
#include "tessera/models/families/t5.h"
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

/// First values, times init_std: 1 of tokens, and of weights that which keeps variances.
WeightInit t5_tokens_init(const ModelConfig& c) { return normal_init(c.init_std); }

TransformerConfig t5_stacks(const ModelConfig& c) {
  TransformerConfig out;
  TransformerLayer& layer = out.layer = layer_of(c);
  layer.kv_heads = 0;
  layer.attention_scale = 1;
  layer.activation_dropout = c.dropout;
  layer.norm = NormKind::Rms;
  layer.bias = false;
  layer.init = layer.residual_init = he_normal_init(Fan::In, c.init_std);
  // T5's queries are 1 / sqrt(e) of its keys and values, in place of a scale. Here they are one
  // matrix, whose rows share it: scores begin as in T5.
  const double e = static_cast<double>(c.head_dim());
  layer.attention_init = he_normal_init(Fan::In, c.init_std * std::pow(e, -0.25));
  out.encoder_layers = c.layers, out.decoder_layers = c.decoder();
  return out;
}

/// What all layers of a stack add to their scores.
Value t5_bias(const ModelConfig& c, Builder& builder, std::string_view block, std::int64_t queries,
              std::int64_t keys, Distances distances, Value first = {}) {
  const Scope scope(builder, block);
  const double deviation = c.init_std / std::sqrt(static_cast<double>(c.width));
  return relative_bias(builder, "relative", c.heads, queries, keys, distances,
                       normal_init(deviation), first, {c.distance_kinds, c.far_distance});
}

/// What the encoder makes of a source, and the table of tokens.
struct T5Source {
  Encoded encoded;
  Value table;
};

T5Source t5_read(const ModelConfig& c, Value source, const Pass& pass) {
  Builder& builder = source.builder();
  Visible visible = visible_source(c, source, pass);
  const Encoded seen{.visible = visible};
  const std::int64_t s = source.shape()[1];
  visible.bias = t5_bias(c, builder, "embed", s, s, Distances::Both);
  EmbeddingResult from;
  {
    const Scope scope(builder, "embed");
    from = embedding(source, "token", c.vocabulary, c.width, t5_tokens_init(c));
    from.rows = dropout_layer(from.rows, c.dropout, pass.step, "dropout");
    builder.set_name(from.rows, "residual");
  }
  T5Source out{seen, from.table};
  const Value read = transformer_encoder(from.rows, t5_stacks(c), visible, pass);
  const Scope scope(builder, "encoder");
  out.encoded.values = dropout_layer(read, c.dropout, pass.step, "dropout");
  return out;
}

/// What the decoder makes of ids.
Value t5_target(const ModelConfig& c, Value ids, Value table, const Encoded& encoded,
                const Pass& pass) {
  Builder& builder = ids.builder();
  const std::int64_t s = ids.shape()[1];
  Visible visible{.causal = true};
  visible.bias = t5_bias(c, builder, "embed_target", s, pass.position.valid() ? pass.room : s,
                         Distances::Before, pass.position);
  Value x;
  {
    const Scope scope(builder, "embed_target");
    x = dropout_layer(gather(ids, table), c.dropout, pass.step, "dropout");
    builder.set_name(x, "residual");
  }
  x = transformer_decoder(x, encoded, t5_stacks(c), visible, pass);
  {
    const Scope scope(builder, "decoder");
    x = dropout_layer(x, c.dropout, pass.step, "dropout");
  }
  return x;
}

/// Logits of what follows ids.
Value t5_decoded(const ModelConfig& c, Value ids, Value table, const Encoded& encoded,
                 const Pass& pass) {
  Value x = t5_target(c, ids, table, encoded, pass);
  if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
  if (const double scale = tied_logit_scale(c); scale != 1) x = x * scale;
  if (!c.tied_head) return linear(x, "head", c.vocabulary, {false, t5_tokens_init(c)});
  const Scope scope(ids.builder(), "head");
  return matmul(x, table, {.trans_b = true});
}

}  // namespace

void find_t5_problems(const ModelConfig& c, FieldProblems& problems) {
  constexpr std::string_view kKnown[] = {kT5GatedGelu, kT5Relu};
  find_activation_problems(c, kKnown, problems);
  find_token_problems(c, problems);
  if (c.distance_kinds < 4 || c.distance_kinds > kMaxDistanceKinds)
    problems.add({"distance-kinds"}, text("distance-kinds is ", c.distance_kinds,
                                          "; it must be from 4 to ", kMaxDistanceKinds));
  if (c.far_distance <= c.distance_kinds / 2 || c.far_distance > kMaxContext)
    problems.add({"far-distance", "distance-kinds"},
                 text("far-distance is ", c.far_distance, "; with ", c.distance_kinds,
                      " kinds of distances it must be more than ", c.distance_kinds / 2,
                      " and at most ", kMaxContext));
  find_held_score_problems(c, problems);
}

TextClassifier t5_classifier(const ModelConfig& config) {
  const DecoderRows rows = [](const ModelConfig& c, Value source, Value ids, const Pass& pass) {
    const T5Source from = t5_read(c, source, pass);
    return t5_target(c, ids, from.table, from.encoded, pass);
  };
  return pair_classifier(config, rows, he_normal_init(Fan::In, config.init_std));
}

std::string t5_tokens_of(const Vocabulary& vocabulary) {
  if (std::string usual = started_by_padding(vocabulary); !usual.empty()) return usual;
  if (vocabulary.made_elsewhere() == nullptr) return "";
  const SpecialTokens& has = vocabulary.made_elsewhere()->special_tokens();
  if (has.pad && has.cls && has.sep)
    return to_text(TranslationTokens{*has.pad, *has.cls, *has.sep});
  return "";
}

extern constinit const TranslationModel kT5Model = {
    .logits = [](const ModelConfig& c, Value source, Value ids, const Pass& pass) -> Value {
      const T5Source from = t5_read(c, source, pass);
      return t5_decoded(c, ids, from.table, from.encoded, pass);
    },
    .read_source = [](const ModelConfig& c, Value source) -> void {
      keep_for_decoder(t5_read(c, source, {}).encoded, c.width, t5_stacks(c));
    },
    .next = [](const ModelConfig& c, Value ids, const Pass& pass) -> Value {
      const Value table = token_table(c, ids.builder(), t5_tokens_init(c));
      return t5_decoded(c, ids, table, {.kept = c.source()}, pass);
    },
    .sentence_files = true,
};

extern constinit const ModelFamily kT5 = t5_family({
    .name = "t5",
    .doc = "encoder and decoder, for translation; RMS norm, relative positions, ReLU or gated GELU",
    .publish = publish_t5<kT5Relu, true>,
});

}  // namespace tessera
