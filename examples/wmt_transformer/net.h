#pragma once
/// The network of MindSpore's tutorial (its model.py): embeddings of words and positions, an
/// encoder-decoder Transformer, and a head; and the same in the parts by which it translates.
///
/// It is written as for one device: how many devices there are, and what each of them holds, is
/// said in wmt_transformer.cpp.

#include <cmath>

#include "tessera/tessera.h"

namespace wmt {

using namespace tessera;

/// Rows of words and of positions, added, with dropout: ids [b, s] -> [b, s, width]. `first` is the
/// position of the first id; empty: 0.
inline Value embedding_layer(const ModelConfig& c, Value ids, std::string_view name,
                             std::int64_t positions, Value first, const Pass& pass) {
  const Scope scope(ids.builder(), name);
  const Value words = embedding(ids, "token", c.vocabulary, c.width, init_of(c)).rows;
  const Value x = learned_positions(words, "position", positions, init_of(c), first);
  return dropout_layer(x, c.dropout, pass.step, "dropout");
}

inline TransformerConfig transformer_of(const ModelConfig& c) {
  TransformerConfig out;
  out.encoder_layers = c.layers, out.decoder_layers = c.decoder_layers;
  out.layer = layer_of(c);
  out.layer.attention_dropout = out.layer.hidden_dropout = 0;  // as in the tutorial
  out.layer.feed_forward = FeedForward::Relu;
  return out;
}

/// What can be seen of ids [b, s]: all but the padding.
inline Value no_equal(const ModelConfig& c, Value ids) {
  return not_equal(ids, ids.builder().constant(translation_tokens(c).pad, DType::I32));
}

/// What the encoder makes of a source [b, s].
inline Encoded encoded(const ModelConfig& c, Value source, const Pass& pass) {
  const Visible words{.mask = no_equal(c, source)};
  const Value x = embedding_layer(c, source, "embed", c.source_context, {}, pass);
  return {transformer_encoder(x, transformer_of(c), words, pass), words};
}

/// Logits [b, t, vocabulary] of what follows each of the ids [b, t].
inline Value decoded(const ModelConfig& c, Value ids, const Encoded& source, const Visible& visible,
                     const Pass& pass) {
  const Value x = embedding_layer(c, ids, "embed_target", c.context, pass.position, pass);
  Value y = transformer_decoder(x, source, transformer_of(c), visible, pass);
  if (pass.wanted.valid()) y = dynamic_slice(y, 1, pass.wanted, 1);  // of the last token alone
  // Rows of `y` have the length sqrt(width), so the first logits are about 0.1: the first loss is
  // that of a guess, ln(vocabulary).
  const WeightInit init = normal_init(0.1 / std::sqrt(static_cast<double>(c.width)));
  return linear(y, "head", c.vocabulary, {.bias = false, .init = init});
}

inline constexpr TranslationModel kNet = {
    .logits = [](const ModelConfig& c, Value source, Value ids, const Pass& pass) -> Value {
      const Visible visible{.causal = true, .mask = no_equal(c, ids)};
      return decoded(c, ids, encoded(c, source, pass), visible, pass);
    },
    .read_source = [](const ModelConfig& c, Value source) -> void {
      keep_for_decoder(encoded(c, source, {}), c.width, transformer_of(c));
    },
    .next = [](const ModelConfig& c, Value ids, const Pass& pass) -> Value {
      return decoded(c, ids, {.kept = c.source_context}, {.causal = true}, pass);
    },
};

/// The fields of ModelConfig that the network reads.
inline constexpr ReadField kNetReads[] = {{"layers", "those of the encoder"},
                                          {"decoder-layers"},
                                          {"heads"},
                                          {"width"},
                                          {"ffn-width"},
                                          {"source-context"},
                                          {"context"},
                                          {"dropout"},
                                          {"init-std"},
                                          {"vocab-size"}};

inline constexpr TensorCut kTargetRows[] = {{"embed_target.token.weight", 0, 2, /*table=*/true}};

inline constexpr FamilyTask kTasks[] = {
    {kSeq2SeqLm, [](const ModelConfig& c) { return translation(c, kNet); }}};

/// The family "wmt": with it the command knows the network, to train it, to go on and to translate.
inline constexpr ModelFamily kWmt = {
    .name = "wmt",
    .doc = "the network of the tutorial",
    .reads = kNetReads,
    .tasks = kTasks,
    .stacks = [](const ModelConfig& c) -> std::vector<LayerStack> {
      return {{"encoder.layers", c.layers}, {"decoder.layers", c.decoder_layers, 2}};
    },
    .cuts = kTargetRows,
    .special_tokens = kTranslationTokens,
};

}  // namespace wmt
