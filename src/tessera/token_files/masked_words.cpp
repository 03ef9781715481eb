#include "tessera/token_files/masked_words.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/token_files/blend.h"

namespace tessera {

namespace {

constexpr double kGeometric = 0.2;

/// Positions of the tokens that are masked or not together: a word, or a single piece.
using Word = std::vector<std::int64_t>;

std::vector<Word> words_of(const TokenIds& ids, const WordPieces& pieces, bool whole) {
  std::vector<Word> out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == pieces.cls || ids[i] == pieces.sep) continue;
    const auto at = static_cast<std::int64_t>(i);
    if (whole && !out.empty() && pieces.continues(ids[i])) {
      out.back().push_back(at);
    } else {
      out.push_back({at});
    }
  }
  return out;
}

/// The number of words to mask: 1 to `longest`.
class RunLength {
 public:
  explicit RunLength(const MaskingOptions& options) : options_(options) {
    std::vector<double> p;
    for (std::int64_t n = 1; n <= options.longest; ++n) p.push_back(1.0 / static_cast<double>(n));
    p = normalised(p);
    if (options.prefer_long) std::ranges::reverse(p);
    probabilities_ = normalised(p);
  }
  std::int64_t draw(NumpyRandom& random) const {
    if (options_.geometric) return std::min(random.geometric(kGeometric), options_.longest);
    return static_cast<std::int64_t>(random.choice(probabilities_)) + 1;
  }

 private:
  const MaskingOptions& options_;
  std::vector<double> probabilities_;
};

/// Positions of `count` words from `first` on, or as many as there are.
Word positions_of(const std::vector<Word>& words, std::size_t first, std::int64_t count) {
  Word out;
  const std::size_t last = std::min(words.size(), first + static_cast<std::size_t>(count));
  for (std::size_t i = first; i < last; ++i)
    out.insert(out.end(), words[i].begin(), words[i].end());
  return out;
}

}  // namespace

MaskedTokens mask_words(const TokenIds& ids, std::int64_t target, const WordPieces& pieces,
                        const MaskingOptions& options, const ShownToken& shown,
                        NumpyRandom& random) {
  const std::vector<Word> words = words_of(ids, pieces, options.whole_words);
  const double most = std::min(
      options.probability * static_cast<double>(target),
      std::max(1.0, std::nearbyint(static_cast<double>(ids.size()) * options.probability)));
  const RunLength length(options);
  std::vector<std::size_t> order(words.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  random.shuffle(std::span(order));

  MaskedTokens out;
  out.ids = ids;
  std::vector<bool> masked(ids.size());
  for (const std::size_t first : order) {
    const auto count = static_cast<double>(out.labels.size());
    if (count >= most) break;
    Word run;
    std::int64_t n = length.draw(random);
    for (; n > 0; --n) {
      run = positions_of(words, first, n);
      if (count + static_cast<double>(run.size()) <= most) break;
    }
    const auto is_masked = [&](std::int64_t at) { return masked[static_cast<std::size_t>(at)]; };
    if (n == 0 || std::ranges::any_of(run, is_masked)) continue;
    for (const std::int64_t at : run) {
      const auto i = static_cast<std::size_t>(at);
      masked[i] = true;
      out.ids[i] = shown(ids[i], random);
      out.labels.emplace_back(at, ids[i]);
    }
    out.spans.emplace_back(run.front(), run.back());
  }
  random.shuffle(std::span(order));  // what is drawn behind it depends on it
  std::ranges::sort(out.labels);
  std::ranges::sort(out.spans);
  return out;
}

namespace {

/// Ids, and `pad` behind them up to `length`.
TokenIds padded(TokenIds ids, std::int64_t length, std::int32_t pad) {
  check(std::ssize(ids) <= length, ids.size(), " tokens in a sample of ", length);
  ids.resize(static_cast<std::size_t>(length), pad);
  return ids;
}

void append(TokenIds& out, std::span<const std::int32_t> ids) {
  out.insert(out.end(), ids.begin(), ids.end());
}

TokenIds joined(std::span<const TokenIds> sentences) {
  TokenIds out;
  for (const TokenIds& sentence : sentences) append(out, sentence);
  return out;
}

/// 80 % the mask, 10 % a random piece, 10 % the token itself.
ShownToken shown_of_bert(const WordPieces& pieces) {
  return [&pieces](std::int32_t token, NumpyRandom& random) {
    if (random.random() < 0.8) return pieces.mask;
    if (random.random() < 0.5) return token;
    return pieces.ids[static_cast<std::size_t>(random.randint(0, std::ssize(pieces.ids)))];
  };
}

}  // namespace

BertSample bert_sample(std::span<const TokenIds> sentences, std::int64_t target,
                       std::int64_t context, bool two_parts, const WordPieces& pieces,
                       const MaskingOptions& options, std::uint32_t seed) {
  check(!two_parts || sentences.size() > 1, "two parts of ", sentences.size(), " sentences");
  NumpyRandom random(seed);
  BertSample out;
  std::size_t pivot = sentences.size();
  if (two_parts) {
    pivot = 1;
    if (sentences.size() >= 3)
      pivot = static_cast<std::size_t>(random.randint(1, std::ssize(sentences)));
    out.exchanged = random.random() < 0.5;
  }
  const TokenIds first = joined(sentences.first(pivot)), second = joined(sentences.subspan(pivot));
  std::span<const std::int32_t> a = out.exchanged ? second : first,
                                b = out.exchanged ? first : second;
  while (std::ssize(a) + std::ssize(b) > target) {
    std::span<const std::int32_t>& longer = a.size() > b.size() ? a : b;
    longer = random.random() < 0.5 ? longer.subspan(1) : longer.first(longer.size() - 1);
    out.truncated = true;
  }
  TokenIds ids = {pieces.cls};
  append(ids, a);
  ids.push_back(pieces.sep);
  TokenIds types(ids.size(), 0);
  if (!b.empty()) {
    append(ids, b);
    ids.push_back(pieces.sep);
    types.resize(ids.size(), 1);
  }
  const MaskedTokens masked =
      mask_words(ids, target, pieces, options, shown_of_bert(pieces), random);
  out.types = padded(std::move(types), context, 0);
  out.ids = padded(masked.ids, context, pieces.pad);
  // Also where a token was replaced by the padding.
  for (const std::int32_t id : out.ids) out.padding_mask.push_back(id == pieces.pad ? 0 : 1);
  out.labels = TokenIds(static_cast<std::size_t>(context), -1);
  out.loss_mask = TokenIds(static_cast<std::size_t>(context), 0);
  for (const auto& [at, token] : masked.labels) {
    out.labels[static_cast<std::size_t>(at)] = token;
    out.loss_mask[static_cast<std::size_t>(at)] = 1;
  }
  return out;
}

T5Sample t5_sample(std::span<const TokenIds> sentences, std::int64_t target, std::int64_t context,
                   std::int64_t written, const WordPieces& pieces, const MaskingOptions& options,
                   std::uint32_t seed) {
  NumpyRandom random(seed);
  TokenIds ids = joined(sentences);
  T5Sample out;
  out.truncated = std::ssize(ids) > target;
  if (out.truncated) ids.resize(static_cast<std::size_t>(target));
  const ShownToken mask = [&](std::int32_t, NumpyRandom&) { return pieces.mask; };
  const MaskedTokens masked = mask_words(ids, target, pieces, options, mask, random);
  if (masked.spans.size() > pieces.sentinels.size())
    fail(Fault::Data, "a sample has ", masked.spans.size(), " masked runs, but the vocabulary has ",
         pieces.sentinels.size(),
         " sentinels, <extra_id_0> and so on; give a tokenizer with more, ",
         "with vocab-extra-ids");
  TokenIds source, input = {pieces.begin}, labels;
  std::size_t at = 0, label = 0;
  for (std::size_t i = 0; i < masked.spans.size(); ++i) {
    const auto [first, last] = masked.spans[i];
    append(source,
           std::span<const std::int32_t>(ids).subspan(at, static_cast<std::size_t>(first) - at));
    for (TokenIds* const text : {&source, &input, &labels}) text->push_back(pieces.sentinels[i]);
    // Special tokens inside a run are not masked, and are left out.
    for (; label < masked.labels.size() && masked.labels[label].first <= last; ++label) {
      input.push_back(masked.labels[label].second);
      labels.push_back(masked.labels[label].second);
    }
    at = static_cast<std::size_t>(last) + 1;
  }
  append(source, std::span<const std::int32_t>(ids).subspan(at));
  labels.push_back(pieces.end);
  if (std::ssize(input) > written || std::ssize(source) > context)
    fail(Fault::Data, "a sample has ", source.size(), " tokens to read and ", input.size(),
         " to write, above source-context ", context, " and context ", written,
         "; give a larger context");
  const auto ones = [](const TokenIds& text) { return TokenIds(text.size(), 1); };
  out.source_mask = padded(ones(source), context, 0);
  out.written_mask = padded(ones(input), written, 0);
  out.loss_mask = out.written_mask;
  out.source = padded(std::move(source), context, pieces.pad);
  out.written = padded(std::move(input), written, pieces.pad);
  out.labels = padded(std::move(labels), written, -1);
  return out;
}

}  // namespace tessera
