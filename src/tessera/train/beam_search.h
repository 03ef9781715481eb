#pragma once
/// The likeliest continuation of a text, as far as keeping the best few at each token finds it.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tessera {

struct BeamOptions {
  std::int64_t beams = 4;                          // kept after each token
  std::int64_t tokens = 0;                         // most that are written
  std::optional<std::int32_t> end = std::nullopt;  // the token that ends a text
  /// Scores of texts are their log-probabilities divided by ((5 + length) / 6)^penalty: above 0,
  /// longer texts are preferred. Source: Wu et al. 2016, arXiv 1609.08144, equation 14.
  double length_penalty = 0;
};

struct BeamResult {
  std::vector<std::int32_t> tokens;  // the new ones, with the end where there is one
  double score = 0;
};

/// The best found. `next` continues the beams: beam i is what beam parents[i] was, and then
/// tokens[i]; it returns the logits of each beam's next token. The first call has no tokens: all
/// beams are the text to continue. Of equal scores the earlier beam, then the smaller token wins.
/// Only the first `vocabulary` logits are looked at.
using NextLogits = std::function<std::vector<std::vector<double>>(
    std::span<const std::int32_t> parents, std::span<const std::int32_t> tokens)>;
BeamResult beam_search(const BeamOptions& options, std::int64_t vocabulary, const NextLogits& next);

}  // namespace tessera
