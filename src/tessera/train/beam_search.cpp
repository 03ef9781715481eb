#include "tessera/train/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Beam {
  std::vector<std::int32_t> tokens;
  double log_probability = 0;
};

struct Candidate {
  double log_probability;
  std::size_t beam;
  std::int32_t token;
};

/// The log of the sum of exponentials of the first `count`.
double log_sum(const std::vector<double>& logits, std::int64_t count) {
  const double most = *std::max_element(logits.begin(), logits.begin() + count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += std::exp(logits[static_cast<std::size_t>(i)] - most);
  return most + std::log(sum);
}

double score_of(const BeamOptions& options, double log_probability, std::size_t length) {
  return log_probability /
         std::pow((5.0 + static_cast<double>(length)) / 6.0, options.length_penalty);
}

/// The best `count` continuations, the best first.
std::vector<Candidate> best_of(const std::vector<Beam>& beams,
                               const std::vector<std::vector<double>>& logits,
                               std::int64_t vocabulary, std::size_t count) {
  std::vector<Candidate> all;
  for (std::size_t b = 0; b < beams.size(); ++b) {
    const double sum = log_sum(logits[b], vocabulary);
    for (std::int64_t token = 0; token < vocabulary; ++token)
      all.push_back({beams[b].log_probability + logits[b][static_cast<std::size_t>(token)] - sum, b,
                     static_cast<std::int32_t>(token)});
  }
  count = std::min(count, all.size());
  const auto better = [](const Candidate& x, const Candidate& y) {
    return std::tuple(-x.log_probability, x.beam, x.token) <
           std::tuple(-y.log_probability, y.beam, y.token);
  };
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    better);
  all.resize(count);
  return all;
}

}  // namespace

BeamResult beam_search(const BeamOptions& options, std::int64_t vocabulary,
                       const NextLogits& next) {
  const auto width = static_cast<std::size_t>(options.beams);
  std::vector<Beam> beams(1);  // of equal beams one counts
  std::vector<std::int32_t> parents(width, 0), tokens;
  BeamResult best{{}, kNever};
  const auto finish = [&](const Beam& beam) {
    const double score = score_of(options, beam.log_probability, beam.tokens.size());
    if (score > best.score) best = {beam.tokens, score};
  };
  for (std::int64_t written = 0; written < options.tokens && !beams.empty(); ++written) {
    const std::vector<std::vector<double>> logits = next(parents, tokens);
    std::vector<Beam> kept;
    std::vector<std::int32_t> from;
    // Those that end leave room for others: at most one per beam does.
    for (const Candidate& c : best_of(beams, logits, vocabulary, width + beams.size())) {
      if (kept.size() == width) break;
      Beam beam{beams[c.beam].tokens, c.log_probability};
      beam.tokens.push_back(c.token);
      if (options.end && c.token == *options.end) {
        finish(beam);
        continue;
      }
      kept.push_back(std::move(beam));
      from.push_back(static_cast<std::int32_t>(c.beam));
    }
    // A text only gets less likely: with the best score that it can still reach, none is better.
    const auto hopeless = [&](const Beam& beam) {
      const auto longest = static_cast<std::size_t>(options.tokens);
      const double reach = std::max(score_of(options, beam.log_probability, beam.tokens.size() + 1),
                                    score_of(options, beam.log_probability, longest));
      return best.score > kNever && reach <= best.score;
    };
    beams = std::move(kept);
    if (std::ranges::all_of(beams, hopeless)) return best;
    parents.assign(width, 0);
    tokens.assign(width, 0);
    for (std::size_t b = 0; b < width; ++b) {  // fewer beams than rows: the last is repeated
      const std::size_t row = std::min(b, beams.size() - 1);
      parents[b] = from[row];
      tokens[b] = beams[row].tokens.back();
    }
  }
  for (const Beam& beam : beams) finish(beam);
  return best;
}

}  // namespace tessera
