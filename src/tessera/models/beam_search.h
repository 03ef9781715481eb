#pragma once
/// The likeliest continuation of a text, as far as keeping the best few at each token finds it.

#include <cstdint>
#include <limits>
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

/// The search behind one text, a token at a time: who owns the model hands over logits and
/// continues its rows as the search says, so that several searches can share a model.
///
/// Of equal scores the earlier beam, then the smaller token wins.
class BeamSearch {
 public:
  /// Only the first `vocabulary` logits are looked at.
  BeamSearch(const BeamOptions& options, std::int64_t vocabulary);

  bool done() const { return done_; }
  /// `logits`: of the next token of each beam. At first all beams are the text to continue.
  void advance(std::span<const std::vector<double>> logits);
  /// Beam i is what beam parents()[i] was, and then tokens()[i]. Once it is done: of no meaning,
  /// but beams and tokens that there are.
  std::span<const std::int32_t> parents() const { return parents_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }
  /// The best found. Of a search that is not done: of the texts so far.
  BeamResult result() const;

 private:
  struct Beam {
    std::vector<std::int32_t> tokens;
    double log_probability = 0;
  };
  struct Candidate {
    double log_probability;
    std::size_t beam;
    std::int32_t token;
  };
  std::vector<Candidate> best_of(std::span<const std::vector<double>> logits) const;
  BeamResult scored(const Beam& beam) const;
  bool hopeless(const Beam& beam) const;

  BeamOptions options_;
  std::int64_t vocabulary_;
  std::vector<Beam> beams_;
  std::vector<std::int32_t> parents_, tokens_;
  std::int64_t written_ = 0;
  BeamResult best_{{}, -std::numeric_limits<double>::infinity()};  // of texts that ended
  bool done_ = false;
};

}  // namespace tessera
