#pragma once
/// Text from a trained model, token by token.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/data/vocabulary.h"
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
  std::function<void(std::int32_t)> on_token = nullptr;  // called with each token, in order
};

std::vector<std::string> problems(const GenerateOptions& options);

/// Continues `prompt` with `model`, which has as many rows as there are beams. Draws are a pure
/// function of (seed, place of the token). Returns the prompt's tokens and the new ones. An empty
/// prompt starts at a new line. Ids that `vocabulary` lacks are never written.
Tokens generate(TextModel& model, const Vocabulary& vocabulary, Tokens prompt,
                const GenerateOptions& options);

/// The token that is drawn from `logits` with `random` in [0, 1).
std::int32_t draw(const std::vector<double>& logits, const GenerateOptions& options, double random);

}  // namespace tessera
