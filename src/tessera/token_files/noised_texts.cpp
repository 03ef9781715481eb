#include "tessera/token_files/noised_texts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/draws.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

/// `count` of [0, n), ascending, every set equally likely.
std::vector<std::int64_t> some_of(std::int64_t n, std::int64_t count, Draws& draw) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < n && count > 0; ++i) {
    if (draw.below(n - i) >= count) continue;
    out.push_back(i);
    --count;
  }
  return out;
}

/// Lengths of `parts` parts of `whole` things, each at least one.
std::vector<std::int64_t> parts_of(std::int64_t whole, std::int64_t parts, Draws& draw) {
  std::vector<std::int64_t> ends = some_of(whole - 1, parts - 1, draw);
  for (std::int64_t& end : ends) ++end;
  ends.push_back(whole);
  for (std::size_t i = ends.size() - 1; i > 0; --i) ends[i] -= ends[i - 1];
  return ends;
}

/// Of a text of so many tokens, at least two.
struct SpanCounts {
  std::int64_t noise = 0, spans = 0;
};
SpanCounts span_counts(std::int64_t length, const TextNoise& noise) {
  const double share = static_cast<double>(length) * noise.share;
  const std::int64_t tokens = std::clamp<std::int64_t>(std::lrint(share), 1, length - 1);
  const double spans = static_cast<double>(tokens) / noise.mean_length;
  return {tokens,
          std::clamp<std::int64_t>(std::lrint(spans), 1, std::min(tokens, length - tokens))};
}

NoisedText span_corrupted(std::span<const std::int32_t> tokens, const TextNoise& noise,
                          std::span<const std::int32_t> marks, Draws draw) {
  const std::int64_t length = std::ssize(tokens);
  if (length < 2) return {{tokens.begin(), tokens.end()}, {}};
  const SpanCounts counts = span_counts(length, noise);
  check(counts.spans <= std::ssize(marks), counts.spans, " spans and ", marks.size(), " marks");
  const auto taken = parts_of(counts.noise, counts.spans, draw),
             left = parts_of(length - counts.noise, counts.spans, draw);
  NoisedText out;
  auto next = tokens.begin();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    out.source.insert(out.source.end(), next, next + left[i]);
    next += left[i];
    for (NoisedTokens* const side : {&out.source, &out.target}) side->push_back(marks[i]);
    out.target.insert(out.target.end(), next, next + taken[i]);
    next += taken[i];
  }
  return out;
}

NoisedTokens shuffled_sentences(std::span<const std::int32_t> tokens,
                                const std::vector<bool>& ends_sentence, Draws& draw) {
  std::vector<std::span<const std::int32_t>> sentences;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool ends = at(tokens[i]) < ends_sentence.size() && ends_sentence[at(tokens[i])];
    if (!ends && i + 1 < tokens.size()) continue;
    sentences.push_back(tokens.subspan(begin, i + 1 - begin));
    begin = i + 1;
  }
  for (std::int64_t i = std::ssize(sentences) - 1; i > 0; --i)
    std::swap(sentences[at(i)], sentences[at(draw.below(i + 1))]);
  NoisedTokens out;
  for (const auto& sentence : sentences) out.insert(out.end(), sentence.begin(), sentence.end());
  return out;
}

std::int64_t poisson(double mean, Draws& draw) {
  double probability = std::exp(-mean), below = probability;
  const double drawn = draw.unit();
  std::int64_t out = 0;
  while (drawn >= below && probability > 0) {
    probability *= mean / static_cast<double>(++out);
    below += probability;
  }
  return out;
}

NoisedText infilled(std::span<const std::int32_t> tokens, const TextNoise& noise, std::int32_t mark,
                    const std::vector<bool>& ends_sentence, Draws draw) {
  const std::int64_t length = std::ssize(tokens);
  NoisedText out{{tokens.begin(), tokens.end()}, {tokens.begin(), tokens.end()}};
  if (length == 0) return out;
  if (noise.shuffles_sentences) out.source = shuffled_sentences(tokens, ends_sentence, draw);
  const auto wanted =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(length) * noise.share));
  std::vector<std::int64_t> spans;
  std::int64_t taken = 0;
  // Not more spans than tokens that are taken out: what is left is not longer than the text.
  while (taken < wanted) {
    std::int64_t span = std::min(poisson(noise.mean_length, draw), wanted - taken);
    if (span == 0 && std::ssize(spans) >= taken) continue;
    spans.push_back(span);
    taken += span;
  }
  const std::int64_t units = length - taken + std::ssize(spans);
  const auto marked = some_of(units, std::ssize(spans), draw);
  NoisedTokens left;
  auto next = out.source.begin();
  for (std::int64_t unit = 0, span = 0; unit < units; ++unit) {
    if (span < std::ssize(spans) && marked[at(span)] == unit) {
      left.push_back(mark);
      next += spans[at(span++)];
    } else {
      left.push_back(*next++);
    }
  }
  out.source = std::move(left);
  return out;
}

/// Tokens around what is written, or read.
std::int64_t around(const NoisedTextsOptions& options) { return options.first ? 2 : 1; }

class NoisedTexts final : public Samples {
 public:
  NoisedTexts(std::span<const std::int32_t> tokens, DataPart part,
              const NoisedTextsOptions& options)
      : tokens_(tokens),
        options_(options),
        lengths_(noised_text_lengths(options)),
        key_(random_key(part == DataPart::Train ? options.seed : 0, "data.noise")) {
    if (part == DataPart::Train) {
      if (std::ssize(tokens) <= lengths_.text)
        fail(Fault::Data, "source-context ", options.source, " is longer than the data: a sample ",
             "takes ", lengths_.text + 1, " tokens, and the training text has ", tokens.size(),
             "; use a longer text or a smaller source-context");
      windows_.emplace(tokens, SamplerOptions{lengths_.text, options.seed, options.order});
      return;
    }
    if (tokens.empty())
      fail(Fault::Data, "the held-out part has no token but validation needs one; use a longer ",
           "text or hold out more of it");
    if (options.most > 0 && options.most <= std::ssize(tokens) / lengths_.text)
      tokens_ = tokens.first(at(options.most * lengths_.text));
  }

  std::int64_t size() const override {
    if (windows_) return windows_->windows_per_epoch();
    return (std::ssize(tokens_) + lengths_.text - 1) / lengths_.text;
  }

  std::string notice() const override {
    const std::int64_t written = lengths_.target + around(options_);
    if (!windows_ || written == options_.written) return "";
    return text("samples are texts of ", lengths_.text, " tokens, and write ", written,
                " of context ", options_.written, "; context ", written, " computes no padding");
  }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const auto source = batch.fill_with("source", options_.pad),
               ids = batch.fill_with("ids", options_.pad),
               labels = batch.fill_with("labels", kIgnoredLabel);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto window = tokens_of(first + i);
      if (window.empty()) continue;
      NoisedText noised = noised_text(window, options_.noise, options_.marks,
                                      options_.ends_sentence, key_, first + i);
      if (noised.target.empty()) continue;
      for (NoisedTokens* const side : {&noised.source, &noised.target}) {
        if (options_.first) side->insert(side->begin(), *options_.first);
        side->push_back(options_.end);
      }
      std::ranges::copy(noised.source, source.subspan(at(i * options_.source)).begin());
      const auto row = [&](std::span<std::int32_t> all) {
        return all.subspan(at(i * options_.written), at(options_.written));
      };
      std::ranges::copy(noised.target, row(labels).begin());
      row(ids)[0] = options_.start;
      std::copy(noised.target.begin(), noised.target.end() - 1, row(ids).begin() + 1);
    }
  }

 private:
  /// Empty behind the end of what is held out.
  std::span<const std::int32_t> tokens_of(std::int64_t sample) const {
    const std::int64_t begin = windows_ ? windows_->offset(sample) : sample * lengths_.text;
    if (begin >= std::ssize(tokens_)) return {};
    const std::int64_t length = std::min(lengths_.text, std::ssize(tokens_) - begin);
    return tokens_.subspan(at(begin), at(length));
  }

  std::span<const std::int32_t> tokens_;
  NoisedTextsOptions options_;
  NoisedLengths lengths_;
  std::uint64_t key_;
  std::optional<Sampler> windows_;
};

}  // namespace

NoisedText noised_text(std::span<const std::int32_t> tokens, const TextNoise& noise,
                       std::span<const std::int32_t> marks, const std::vector<bool>& ends_sentence,
                       std::uint64_t key, std::int64_t sample) {
  const Draws draw(key, sample);
  return noise.kind == TextNoise::Kind::Spans
             ? span_corrupted(tokens, noise, marks, draw)
             : infilled(tokens, noise, marks.front(), ends_sentence, draw);
}

NoisedLengths noised_lengths(const TextNoise& noise, std::int64_t source, std::int64_t target) {
  if (noise.kind == TextNoise::Kind::Infilling) {
    const std::int64_t length = std::max<std::int64_t>(0, std::min(source, target));
    return {length, length, 1};
  }
  NoisedLengths out;
  for (std::int64_t length = 2;; ++length) {
    const auto [taken, spans] = span_counts(length, noise);
    if (length - taken + spans > source) return out;
    out = {length, taken + spans, spans};
  }
}

NoisedLengths noised_text_lengths(const NoisedTextsOptions& options) {
  const std::int64_t source = options.source - around(options),
                     written = options.written - around(options);
  const NoisedLengths out = noised_lengths(options.noise, source, written);
  const bool spans = options.noise.kind == TextNoise::Kind::Spans;
  require(out.text > 0, spans ? "source-context is " : "context or source-context is ",
          spans ? options.source : std::min(options.source, options.written),
          ", which has no room for a text; give a larger one");
  require(out.target <= written, "a sample of source-context ", options.source, " is a text of ",
          out.text, " tokens, of which ", out.target + around(options),
          " are written, but context is ", options.written, "; give context at least ",
          out.target + around(options), ", or a smaller source-context");
  require(out.spans <= std::ssize(options.marks), "a sample of source-context ", options.source,
          " has ", counted(out.spans, "span"), ", and there are ", options.marks.size(),
          " tokens that mark one; give a smaller source-context");
  return out;
}

std::vector<bool> sentence_ends(const Vocabulary& vocabulary) {
  std::vector<bool> out;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string text = vocabulary.decode(std::span(&id, 1));
    const std::size_t last = text.find_last_not_of(' ');
    const bool mark =
        last != std::string::npos && std::string_view(".!?").find(text[last]) != std::string::npos;
    out.push_back(mark || text.find('\n') != std::string::npos);
  }
  return out;
}

std::unique_ptr<Samples> noised_texts(std::span<const std::int32_t> tokens, DataPart part,
                                      const NoisedTextsOptions& options) {
  return std::make_unique<NoisedTexts>(tokens, part, options);
}

}  // namespace tessera
