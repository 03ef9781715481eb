#pragma once
/// Models that write one sequence from another.

#include "tessera/models/family.h"

namespace tessera {

/// The special tokens of translations: the last three ids of the model's vocabulary.
struct TranslationTokens {
  std::int32_t pad, start, end;
};
inline constexpr std::int64_t kTranslationTokens = 3;
TranslationTokens translation_tokens(const ModelConfig& config);

/// A model that writes one sequence from another: what it is trained by, and the same in two parts,
/// by which it writes.
struct TranslationModel {
  /// Logits [b, t, vocabulary] of what follows each of the ids [b, t], for source [b, s].
  Value (*logits)(const ModelConfig& config, Value source, Value ids, const Pass& pass);
  /// Reads a source [b, s]: what `next` needs of it goes into caches.
  void (*read_source)(const ModelConfig& config, Value source);
  /// The logits by these caches, and by those of earlier tokens, as `pass` says.
  Value (*next)(const ModelConfig& config, Value ids, const Pass& pass);
};

/// The task of writing the target of a source, token after token.
///
/// Inputs: source [b, source()] and ids [b, context], which begin with the start token; labels
/// [b, context]: the tokens that follow, the end token last, kIgnoredLabel behind it. All are i32,
/// padded with the pad token. Loss: mean cross-entropy over all labels that count. Data: pairs
/// (data/pairs.h), every one once per epoch, in an order drawn anew for each. Texts are written
/// from the start token on, until the end token; by default each token is the likeliest.
Task translation(const ModelConfig& config, const TranslationModel& model);

/// Of the family `transformer`.
extern const TranslationModel kTransformerModel;

}  // namespace tessera
