#include "tessera/token_files/masked_pairs.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/draws.h"
#include "tessera/token_files/permutation.h"
#include "tessera/token_files/sentence_dataset.h"

namespace tessera {

namespace {

constexpr std::int64_t kMaskedPercent = 15;
constexpr std::int64_t kShortOneOf = 10;  // samples

/// The parts of a sample; of one, `b` is empty.
struct PairOfParts {
  std::span<const std::int32_t> a, b;
  std::int32_t next = 0;
};

/// What lies where in a batch.
struct PairRows {
  std::span<std::int32_t> ids, types, mask, labels, next, positions;

  PairRows(BatchInputs& batch, const MaskedPairsOptions& options)
      : ids(batch.fill<std::int32_t>("ids")),
        mask(batch.fill<std::int32_t>("mask")),
        labels(batch.fill<std::int32_t>("labels")) {
    if (options.parts != SampleParts::One) {
      types = batch.fill<std::int32_t>("types");
      next = batch.fill<std::int32_t>("next");
    }
    if (options.masked_positions > 0) positions = batch.fill<std::int32_t>("masked_positions");
  }
};

/// Tokens of the text in a sample.
std::int64_t room_of(const MaskedPairsOptions& options) {
  return options.context - (options.parts == SampleParts::One ? 2 : 3);
}

class MaskedPairs : public Samples {
 public:
  MaskedPairs(std::span<const std::int32_t> tokens, const MaskedPairsOptions& options)
      : tokens_(tokens),
        options_(options),
        pair_key_(random_key(options.seed, "data.pair")),
        place_key_(random_key(options.seed, "data.masked")),
        mask_key_(random_key(options.seed, "data.mask")),
        run_key_(random_key(options.seed, "data.run")) {}

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const final {
    PairRows rows(batch, options_);
    std::ranges::fill(rows.ids, special(SpecialToken::Pad));
    for (const auto& zeros : {rows.types, rows.mask, rows.positions}) std::ranges::fill(zeros, 0);
    for (const auto& labels : {rows.labels, rows.next}) std::ranges::fill(labels, kIgnoredLabel);
    for (std::int64_t i = 0; i < count; ++i) {
      const PairOfParts pair = parts_of(first + i);
      if (!pair.a.empty()) write(pair, first + i, i, rows);
    }
  }

 protected:
  /// No parts: the sample is beyond the last.
  virtual PairOfParts parts_of(std::int64_t sample) const = 0;

  SampleParts parts() const { return options_.parts; }
  bool one_part() const { return parts() == SampleParts::One; }
  std::int64_t room() const { return room_of(options_); }
  Draws draws(std::int64_t sample) const { return {pair_key_, sample}; }
  std::span<const std::int32_t> tokens(std::int64_t begin, std::int64_t count) const {
    return tokens_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
  }
  std::int64_t num_tokens() const { return std::ssize(tokens_); }

 private:
  std::int32_t special(SpecialToken token) const {
    if (options_.special) return (*options_.special)[static_cast<std::size_t>(token)];
    return static_cast<std::int32_t>(options_.vocabulary + static_cast<std::int64_t>(token));
  }

  /// Row `i` of a batch.
  void write(const PairOfParts& pair, std::int64_t sample, std::int64_t i, PairRows& rows) const {
    const auto context = static_cast<std::size_t>(options_.context), num_a = pair.a.size(),
               used = num_a + pair.b.size() + (one_part() ? 2 : 3);
    const auto row = [&](std::span<std::int32_t> all) {
      return all.subspan(static_cast<std::size_t>(i) * context, context);
    };
    const std::span<std::int32_t> ids = row(rows.ids);
    ids[0] = special(SpecialToken::Cls);
    std::ranges::copy(pair.a, ids.begin() + 1);
    ids[num_a + 1] = ids[used - 1] = special(SpecialToken::Sep);
    std::ranges::fill(row(rows.mask).first(used), 1);
    if (!one_part()) {
      std::ranges::copy(pair.b, ids.subspan(num_a + 2).begin());
      std::ranges::fill(row(rows.types).subspan(num_a + 2, used - num_a - 2), 1);
      rows.next[static_cast<std::size_t>(i)] = pair.b.empty() ? kIgnoredLabel : pair.next;
    }

    const auto num_tokens = static_cast<std::int64_t>(num_a + pair.b.size());
    const auto predict = [&](std::int32_t at, std::int32_t& label) {
      std::int32_t& token = ids[static_cast<std::size_t>(at)];
      label = token;
      token = shown(token, sample, at);
    };
    const auto wanted = static_cast<std::size_t>(num_masked(num_tokens));
    std::vector<std::int32_t> places = options_.longest_run > 1
                                           ? places_of_runs(pair, sample, wanted)
                                           : places_of_tokens(num_tokens, sample, wanted);
    for (std::int32_t& place : places) place += static_cast<std::size_t>(place) < num_a ? 1 : 2;
    std::ranges::sort(places);
    if (options_.masked_positions > 0) {
      const auto begin = static_cast<std::size_t>(i * options_.masked_positions);
      std::ranges::copy(places, rows.positions.subspan(begin).begin());
      for (std::size_t n = 0; n < places.size(); ++n) predict(places[n], rows.labels[begin + n]);
    } else {
      const std::span<std::int32_t> labels = row(rows.labels);
      for (const std::int32_t at : places) predict(at, labels[static_cast<std::size_t>(at)]);
    }
  }

  /// Tokens of a sample of so many, the texts' alone, that are to be predicted: `wanted` of them.
  std::vector<std::int32_t> places_of_tokens(std::int64_t num_tokens, std::int64_t sample,
                                             std::size_t wanted) const {
    std::vector<std::int32_t> out;
    for (std::size_t n = 0; n < wanted; ++n)
      out.push_back(
          static_cast<std::int32_t>(permute(n, static_cast<std::uint64_t>(num_tokens), place_key_,
                                            static_cast<std::uint64_t>(sample))));
    return out;
  }

  /// The same in runs of words of a part, `wanted` at most. A run that is too long, or has a word
  /// of another one, is left out or becomes shorter.
  std::vector<std::int32_t> places_of_runs(const PairOfParts& pair, std::int64_t sample,
                                           std::size_t wanted) const {
    std::vector<std::int32_t> begins;  // of words, and the end
    std::int32_t at = 0;
    for (const auto& part : {pair.a, pair.b}) {
      for (std::size_t i = 0; i < part.size(); ++i, ++at) {
        if (i == 0 || options_.begins_word[static_cast<std::size_t>(part[i])]) begins.push_back(at);
      }
    }
    const std::size_t words = begins.size();
    begins.push_back(at);
    std::vector<bool> taken(words);
    std::vector<std::int32_t> out;
    Draws draw(run_key_, sample);
    for (std::size_t n = 0; n < words && out.size() < wanted; ++n) {
      const std::uint64_t first = permute(n, words, place_key_, static_cast<std::uint64_t>(sample));
      const auto end_of_part = static_cast<std::int32_t>(
          begins[first] < std::ssize(pair.a) ? pair.a.size() : static_cast<std::size_t>(at));
      std::size_t end = first;
      for (std::int64_t left = run_length(draw); left > 0 && end < words; --left, ++end) {
        const std::int32_t last = begins[end + 1];
        if (taken[end] || last > end_of_part ||
            out.size() + static_cast<std::size_t>(last - begins[first]) > wanted)
          break;
      }
      for (std::size_t word = first; word < end; ++word) taken[word] = true;
      for (std::int32_t token = begins[first]; token < begins[end]; ++token) out.push_back(token);
    }
    if (out.empty()) return places_of_tokens(at, sample, wanted);  // words are longer than that
    return out;
  }

  /// n with a probability proportional to 1 / n.
  std::int64_t run_length(Draws& draw) const {
    double all = 0;
    for (std::int64_t n = 1; n <= options_.longest_run; ++n) all += 1 / static_cast<double>(n);
    double drawn = draw.unit() * all;
    std::int64_t n = 1;
    while (n < options_.longest_run && (drawn -= 1 / static_cast<double>(n)) >= 0) ++n;
    return n;
  }

  std::int64_t num_masked(std::int64_t num_tokens) const {
    const std::int64_t share = std::max<std::int64_t>(1, (num_tokens * kMaskedPercent + 50) / 100);
    return options_.masked_positions > 0 ? std::min(share, options_.masked_positions) : share;
  }

  /// What the model sees of a token that it is to predict.
  std::int32_t shown(std::int32_t token, std::int64_t sample, std::int32_t at) const {
    if (options_.masks_alone) return special(SpecialToken::Mask);
    const PhiloxBlock random =
        philox(mask_key_, static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(sample));
    const float which = unit_float(random[2]);
    if (which < 0.8f) return special(SpecialToken::Mask);
    if (which >= 0.9f) return token;
    return static_cast<std::int32_t>(uniform_index(random, options_.vocabulary));
  }

  std::span<const std::int32_t> tokens_;
  MaskedPairsOptions options_;
  std::uint64_t pair_key_, place_key_, mask_key_, run_key_;
};

class TrainPairs final : public MaskedPairs {
 public:
  TrainPairs(std::span<const std::int32_t> all, const MaskedPairsOptions& options)
      : MaskedPairs(all, options), windows_(all, {room(), options.seed, options.order}) {}
  std::int64_t size() const override { return windows_.windows_per_epoch(); }

 private:
  PairOfParts parts_of(std::int64_t sample) const override {
    const std::int64_t begin = windows_.offset(sample);
    if (one_part()) return {tokens(begin, room()), {}};
    Draws draw = draws(sample);
    const bool is_short = draw.below(kShortOneOf) == 0;
    const std::int64_t length = is_short ? 2 + draw.below(room() - 1) : room();
    const std::int64_t num_a = 1 + draw.below(length - 1), num_b = length - num_a;
    const std::int64_t follows = begin + num_a;
    const std::span<const std::int32_t> a = tokens(begin, num_a), b = tokens(follows, num_b);
    if (draw.below(2) == 0) return {a, b, 0};
    if (parts() == SampleParts::Swapped) return {b, a, 1};
    std::int64_t elsewhere = draw.below(num_tokens() - num_b);
    if (elsewhere >= follows) ++elsewhere;
    return {a, tokens(elsewhere, num_b), 1};
  }

  Sampler windows_;
};

class FixedPairs final : public MaskedPairs {
 public:
  using MaskedPairs::MaskedPairs;
  std::int64_t size() const override { return (num_tokens() + room() - 1) / room(); }

 private:
  /// Of two parts, sample w of the first half of those that are full may exchange its B with sample
  /// w + half; or each sample may swap its own.
  PairOfParts parts_of(std::int64_t sample) const override {
    const std::int64_t begin = sample * room();
    if (begin >= num_tokens()) return {};
    const std::int64_t length = std::min(room(), num_tokens() - begin);
    if (one_part()) return {tokens(begin, length), {}};
    if (parts() == SampleParts::Swapped) return swapped(begin, length, draws(sample));
    const std::int64_t half = num_tokens() / room() / 2;
    const bool has_twin = sample < 2 * half;
    const std::int64_t first = has_twin ? sample % half : sample;
    Draws draw = draws(first);
    const std::int64_t num_a = length == 1 ? 1 : 1 + draw.below(length - 1);
    const bool exchanged = has_twin && draw.below(2) == 1;
    const std::int64_t twin = sample < half ? sample + half : sample - half;
    return {tokens(begin, num_a),
            tokens((exchanged ? twin * room() : begin) + num_a, length - num_a), exchanged ? 1 : 0};
  }

  PairOfParts swapped(std::int64_t begin, std::int64_t length, Draws draw) const {
    if (length == 1) return {tokens(begin, 1), {}};
    const std::int64_t num_a = 1 + draw.below(length - 1);
    const auto a = tokens(begin, num_a), b = tokens(begin + num_a, length - num_a);
    if (draw.below(2) == 1) return {b, a, 1};
    return {a, b, 0};
  }
};

}  // namespace

std::vector<bool> word_begins(const Vocabulary& vocabulary) {
  const Tokenizer* const made = vocabulary.made_elsewhere();
  const auto piece = [&](std::int32_t id) {
    return made != nullptr ? made->token(id).value_or("") : vocabulary.decode(std::span(&id, 1));
  };
  // A blank as SentencePiece and as GPT-2 write it, the latter's new line, and as it is.
  constexpr std::string_view kBlanks[] = {"\u2581", "\u0120", "\u010a", " ", "\n", "\t"};
  const std::function<bool(std::int32_t)> continues =
      made != nullptr ? pieces_that_continue(*made) : nullptr;
  std::vector<bool> begins, blank;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    begins.push_back(!continues || !continues(id));
    const std::string spelled = piece(id);
    blank.push_back(std::ranges::any_of(
        kBlanks, [&](std::string_view mark) { return starts_with(spelled, mark); }));
  }
  if (std::ranges::find(begins, false) != begins.end()) return begins;
  if (std::ranges::find(blank, true) == blank.end()) blank.flip();
  return blank;
}

std::unique_ptr<Samples> masked_pairs(std::span<const std::int32_t> tokens,
                                      const MaskedPairsOptions& options) {
  check(options.context >= least_context(options.parts), "samples of context ", options.context);
  const std::int64_t room = room_of(options);
  if (std::ssize(tokens) < room + 1)
    fail(
        Fault::Data, "context ", options.context, " is longer than the data: a sample takes ",
        room + 1, " tokens (", options.context - room,
        " of its positions are for special tokens, and one more token is needed) but the training ",
        "text has ", tokens.size(), "; use a longer text or a shorter context");
  return std::make_unique<TrainPairs>(tokens, options);
}

std::unique_ptr<Samples> fixed_masked_pairs(std::span<const std::int32_t> tokens,
                                            const MaskedPairsOptions& options, std::int64_t most) {
  check(options.context >= least_context(options.parts), "samples of context ", options.context);
  if (tokens.empty())
    fail(Fault::Data, "the held-out part has no token but validation needs one; use a longer text ",
         "or hold out more of it");
  const std::int64_t room = room_of(options);
  if (most > 0 && most <= std::ssize(tokens) / room)
    tokens = tokens.first(static_cast<std::size_t>(most * room));
  MaskedPairsOptions fixed = options;
  fixed.seed = 0;
  return std::make_unique<FixedPairs>(tokens, fixed);
}

}  // namespace tessera
