#pragma once
/// Text from a trained model, token by token.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/field_problems.h"
#include "tessera/models/written_tokens.h"
#include "tessera/tokenizers/vocabulary.h"
#include "tessera/train/text_model.h"

namespace tessera {

struct GenerateOptions {
  std::int64_t tokens = 200;
  double temperature = 0.8;  // 0: always the most likely token
  std::int64_t top_k = 0;    // draw from the k most likely tokens; 0: from all
  double top_p = 1;          // of those, from the fewest likeliest whose shares reach it; 1: all
  std::uint64_t seed = 1;
  std::int64_t beams = 1;     // above 1: beam search, which draws nothing
  double length_penalty = 0;  // BeamOptions
  std::int64_t first = 0;     // number of the first text: each text has draws of its own
  /// Called with each token of a text, in order.
  std::function<void(std::size_t text, std::int32_t token)> on_token = nullptr;
  /// Called after it, but for beams: true ends the text behind that token.
  std::function<bool(std::size_t text, std::int32_t token)> ends = nullptr;
};

FieldProblems problems(const GenerateOptions& options);

/// Continues each beginning until the end token, where the task has one, or by `options.tokens`
/// tokens, or as many as the model can. Prompts are of one length. The model has
/// rows for all, options.beams for each; rows that are left over repeat the last. Draws are a pure
/// function of (seed, number of the text, place of the token). Returns the new tokens of each text,
/// without the end. Ids that `vocabulary` lacks are never written.
/// Errors: as of TextModel; Fault::Usage: more texts than the model has rows for.
std::vector<Tokens> generate(TextModel& model, const Vocabulary& vocabulary,
                             std::span<const Beginning> texts, const GenerateOptions& options);

/// The token that is drawn from `logits` with `random` in [0, 1).
std::int32_t draw(const std::vector<double>& logits, const GenerateOptions& options, double random);

}  // namespace tessera
