#include "tessera/models/beam_search.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

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

}  // namespace

BeamSearch::BeamSearch(const BeamOptions& options, std::int64_t vocabulary)
    : options_(options),
      vocabulary_(vocabulary),
      beams_(1),  // of equal beams one counts
      parents_(static_cast<std::size_t>(options.beams), 0),
      tokens_(parents_),
      done_(options.tokens < 1) {}

BeamResult BeamSearch::scored(const Beam& beam) const {
  return {beam.tokens, score_of(options_, beam.log_probability, beam.tokens.size())};
}

/// The best continuations of all beams, the best first: so many that as many as there are rows go
/// on, though one of each beam may end.
std::vector<BeamSearch::Candidate> BeamSearch::best_of(
    std::span<const std::vector<double>> logits) const {
  std::vector<Candidate> all;
  for (std::size_t b = 0; b < beams_.size(); ++b) {
    const double sum = log_sum(logits[b], vocabulary_);
    for (std::int64_t token = 0; token < vocabulary_; ++token)
      all.push_back({beams_[b].log_probability + logits[b][static_cast<std::size_t>(token)] - sum,
                     b, static_cast<std::int32_t>(token)});
  }
  const std::size_t count = std::min(parents_.size() + beams_.size(), all.size());
  const auto better = [](const Candidate& x, const Candidate& y) {
    return std::tuple(-x.log_probability, x.beam, x.token) <
           std::tuple(-y.log_probability, y.beam, y.token);
  };
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    better);
  all.resize(count);
  return all;
}

/// A text only gets less likely: with the best score that it can still reach, it is not better than
/// one that ended.
bool BeamSearch::hopeless(const Beam& beam) const {
  const auto longest = static_cast<std::size_t>(options_.tokens);
  const double reach = std::max(score_of(options_, beam.log_probability, beam.tokens.size() + 1),
                                score_of(options_, beam.log_probability, longest));
  return best_.score > kNever && reach <= best_.score;
}

void BeamSearch::advance(std::span<const std::vector<double>> logits) {
  check(!done_ && logits.size() >= beams_.size(), logits.size(), " rows of logits for ",
        beams_.size(), " beams of a search that is ", done_ ? "" : "not ", "done");
  std::vector<Beam> kept;
  std::vector<std::int32_t> from;
  for (const Candidate& c : best_of(logits)) {
    if (kept.size() == parents_.size()) break;
    Beam beam{beams_[c.beam].tokens, c.log_probability};
    beam.tokens.push_back(c.token);
    if (options_.end && c.token == *options_.end) {
      const BeamResult ended = scored(beam);
      if (ended.score > best_.score) best_ = ended;
      continue;
    }
    kept.push_back(std::move(beam));
    from.push_back(static_cast<std::int32_t>(c.beam));
  }
  beams_ = std::move(kept);
  done_ = ++written_ == options_.tokens ||
          std::ranges::all_of(beams_, [&](const Beam& beam) { return hopeless(beam); });
  for (std::size_t b = 0; b < parents_.size() && !beams_.empty(); ++b) {
    const std::size_t row =
        std::min(b, beams_.size() - 1);  // fewer beams than rows: the last again
    parents_[b] = from[row];
    tokens_[b] = beams_[row].tokens.back();
  }
}

BeamResult BeamSearch::result() const {
  BeamResult out = best_;
  for (const Beam& beam : beams_) {
    if (hopeless(beam) && written_ < options_.tokens) continue;
    BeamResult found = scored(beam);
    if (found.score > out.score) out = std::move(found);
  }
  return out;
}

}  // namespace tessera
