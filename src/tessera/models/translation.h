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

/// Logits [b, t, vocabulary] of what follows each of the ids [b, t], for source [b, s].
using TranslationFunction = Value (*)(const ModelConfig& config, Value source, Value ids,
                                      const Pass& pass);

/// The task of writing the target of a source, token after token.
///
/// Inputs: source [b, source()] and ids [b, context], which begin with the start token; labels
/// [b, context]: the tokens that follow, the end token last, kIgnoredLabel behind it. All are i32,
/// padded with the pad token. Loss: mean cross-entropy over all labels that count. Data: pairs
/// (data/pairs.h), every one once per epoch, in an order drawn anew for each.
Task translation(const ModelConfig& config, TranslationFunction logits);

/// Of the family `transformer`.
Value transformer_logits(const ModelConfig& config, Value source, Value ids, const Pass& pass);

}  // namespace tessera
