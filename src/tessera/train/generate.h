#pragma once
/// Text from a trained model, token by token.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/data/vocabulary.h"
#include "tessera/train/crew.h"

namespace tessera {

struct GenerateOptions {
  std::int64_t tokens = 200;
  double temperature = 0.8;  // 0: always the most likely token
  std::int64_t top_k = 0;    // draw from the k most likely tokens; 0: from all
  double top_p = 1;          // of those, from the fewest likeliest whose shares reach it; 1: all
  std::uint64_t seed = 1;
  std::function<void(std::int32_t)> on_token = nullptr;  // called with each token as it is drawn
};

std::vector<std::string> problems(const GenerateOptions& options);

/// Runs program "sample" of `crew` once for each token; the model sees the last `context`
/// tokens. Draws are a pure function of (seed, place of the token). Returns the prompt's tokens and
/// the new ones. An empty prompt starts at a new line. Ids that `vocabulary` lacks are never drawn.
std::vector<std::int32_t> generate(Crew& crew, const Vocabulary& vocabulary,
                                   std::vector<std::int32_t> prompt,
                                   const GenerateOptions& options);

/// The token that is drawn from `logits` with `random` in [0, 1).
std::int32_t draw(const std::vector<double>& logits, const GenerateOptions& options, double random);

}  // namespace tessera
