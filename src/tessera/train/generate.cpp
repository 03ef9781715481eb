#include "tessera/train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/models/beam_search.h"

namespace tessera {

namespace {

/// In [0, 1), a multiple of 2^-53.
double uniform(std::uint64_t key, std::uint64_t index, std::uint64_t text) {
  const PhiloxBlock random = philox(key, index, text);
  const std::uint64_t bits = static_cast<std::uint64_t>(random[0]) << 32 | random[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

FieldProblems problems(const GenerateOptions& o) {
  FieldProblems out;
  if (o.tokens < 1) out.add({"tokens"}, text("tokens is ", o.tokens, "; it must be 1 or more"));
  if (!(o.temperature >= 0 && o.temperature <= 100))
    out.add({"temperature"},
            text("temperature is ", o.temperature,
                 "; it must be at least 0 (the most likely token) and at most 100"));
  if (o.top_k < 0) out.add({"top-k"}, text("top-k is ", o.top_k, "; it must be 0 (all) or more"));
  if (!(o.top_p > 0 && o.top_p <= 1))
    out.add({"top-p"}, text("top-p is ", o.top_p, "; it must be above 0 and at most 1 (all)"));
  if (o.beams < 1 || o.beams > 1000)
    out.add({"beams"}, text("beams is ", o.beams, "; it must be from 1 to 1000"));
  if (!(std::abs(o.length_penalty) <= 100))
    out.add({"length-penalty"},
            text("length-penalty is ", o.length_penalty, "; it must be from -100 to 100"));
  return out;
}

std::int32_t draw(const std::vector<double>& logits, const GenerateOptions& options,
                  double random) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (options.temperature == 0) return static_cast<std::int32_t>(best - logits.begin());
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const bool few = options.top_k > 0 && options.top_k < static_cast<std::int64_t>(logits.size());
  if (few || options.top_p < 1) {
    const auto likelier = [&](std::int32_t a, std::int32_t b) {
      const double x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    };
    const auto end = few ? order.begin() + options.top_k : order.end();
    std::partial_sort(order.begin(), end, order.end(), likelier);
    order.erase(end, order.end());
  }
  std::vector<double> upto;  // sums of weights
  double total = 0;
  for (const std::int32_t id : order) {
    total += std::exp((logits[static_cast<std::size_t>(id)] - *best) / options.temperature);
    upto.push_back(total);
  }
  if (options.top_p < 1) {
    const auto reached = std::lower_bound(upto.begin(), upto.end(), options.top_p * total);
    if (reached != upto.end()) upto.erase(reached + 1, upto.end());
    total = upto.back();
    order.resize(upto.size());
  }
  const auto at = std::upper_bound(upto.begin(), upto.end(), random * total);
  return order[std::min(static_cast<std::size_t>(at - upto.begin()), order.size() - 1)];
}

namespace {

/// The texts of all rows while they are written: `each` rows for each beginning.
class WrittenRows {
 public:
  WrittenRows(TextModel& model, std::span<const Beginning> texts, std::int64_t each)
      : model_(model) {
    const auto count = static_cast<std::size_t>(model.rows());
    require(!texts.empty() && static_cast<std::int64_t>(texts.size()) * each <= model.rows(),
            texts.size(), " texts of ", each, " rows each are more than the ", model.rows(),
            " rows of the model, or none; give at least one, and fewer");
    std::vector<Tokens> sources;
    for (std::size_t row = 0; row < count; ++row) {
      const Beginning& text =
          texts[std::min(row / static_cast<std::size_t>(each), texts.size() - 1)];
      texts_.push_back(text.prompt);
      if (!text.source.empty()) sources.push_back(text.source);
    }
    model.begin(sources);
  }

  std::vector<std::vector<double>> next() { return model_.next(texts_); }
  void add(std::size_t row, std::int32_t token) { texts_[row].push_back(token); }
  /// Row i goes on where row parents[i] is.
  void move(std::span<const std::int32_t> parents) {
    std::vector<Tokens> moved;
    for (const std::int32_t parent : parents)
      moved.push_back(texts_[static_cast<std::size_t>(parent)]);
    texts_ = std::move(moved);
    model_.reorder(parents);
  }
  std::size_t size() const { return texts_.size(); }

 private:
  TextModel& model_;
  std::vector<Tokens> texts_;
};

/// The likeliest texts that beams find.
std::vector<Tokens> search(WrittenRows rows, const WrittenTokens& written, std::size_t texts,
                           std::int64_t tokens, const GenerateOptions& options) {
  const auto beams = static_cast<std::size_t>(options.beams);
  BeamOptions how{
      .beams = options.beams, .tokens = tokens, .length_penalty = options.length_penalty};
  if (written.end) how.end = written.vocabulary;
  std::vector<BeamSearch> searches(texts, BeamSearch(how, written.count()));
  while (!std::ranges::all_of(searches, &BeamSearch::done)) {
    std::vector<std::vector<double>> logits = rows.next();
    for (std::vector<double>& row : logits) row = written.choices(std::move(row));
    std::vector<std::int32_t> parents(rows.size()), grown(rows.size(), 0);
    std::iota(parents.begin(), parents.end(), 0);
    for (std::size_t t = 0; t < texts; ++t) {
      if (searches[t].done()) continue;
      searches[t].advance(std::span(logits).subspan(t * beams, beams));
      for (std::size_t b = 0; b < beams; ++b) {
        parents[t * beams + b] = static_cast<std::int32_t>(t * beams) + searches[t].parents()[b];
        grown[t * beams + b] = searches[t].tokens()[b];
      }
    }
    if (std::ranges::all_of(searches, &BeamSearch::done)) break;
    rows.move(parents);
    for (std::size_t row = 0; row < rows.size(); ++row) rows.add(row, grown[row]);
  }
  std::vector<Tokens> out;
  for (const BeamSearch& search : searches) {
    out.push_back(search.result().tokens);
    if (!out.back().empty() && written.ends(out.back().back())) out.back().pop_back();
    for (const std::int32_t token : out.back()) {
      if (options.on_token) options.on_token(out.size() - 1, token);
    }
  }
  return out;
}

/// One token after the other, each drawn or the likeliest.
std::vector<Tokens> draw_texts(WrittenRows rows, const WrittenTokens& written, std::size_t texts,
                               std::int64_t tokens, const GenerateOptions& options) {
  const std::uint64_t key = random_key(options.seed, "sample");
  std::vector<Tokens> out(texts);
  std::vector<bool> ended(texts, false);
  for (std::int64_t i = 0; i < tokens && std::ranges::count(ended, false) > 0; ++i) {
    const std::vector<std::vector<double>> logits = rows.next();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::int32_t choice = 0;  // of a text that ended: never read
      if (row < texts && !ended[row]) {
        const auto number = static_cast<std::uint64_t>(options.first) + row;
        choice = draw(written.choices(logits[row]), options,
                      uniform(key, static_cast<std::uint64_t>(i), number));
        if (written.ends(choice)) {
          ended[row] = true;
          choice = 0;
        } else {
          out[row].push_back(choice);
          if (options.on_token) options.on_token(row, choice);
          if (options.ends) ended[row] = options.ends(row, choice);
        }
      }
      rows.add(row, choice);
    }
  }
  return out;
}

}  // namespace

std::vector<Tokens> generate(TextModel& model, const Vocabulary& vocabulary,
                             std::span<const Beginning> texts, const GenerateOptions& options) {
  require(options.beams >= 1, "beams is ", options.beams, "; it must be 1 or more");
  const WrittenTokens written(vocabulary, model.writing());
  WrittenRows rows(model, texts, options.beams);
  const std::int64_t tokens =
      std::min(options.tokens, model.most_behind(std::ssize(texts[0].prompt)));
  return options.beams > 1 ? search(std::move(rows), written, texts.size(), tokens, options)
                           : draw_texts(std::move(rows), written, texts.size(), tokens, options);
}

}  // namespace tessera
