#include "tessera/data/sentence_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr std::int32_t kLongSentence = 512;  // tokens

/// How many tokens the next sample is to have.
class WantedTokens {
 public:
  explicit WantedTokens(const SentenceMapRequest& request)
      : random_(request.seed), most_(request.most_tokens) {
    if (request.short_probability > 0)
      one_of_ = static_cast<std::int64_t>(std::round(1.0 / request.short_probability));
  }
  std::int64_t next() {
    if (one_of_ == 0) return most_;
    const auto draw = static_cast<std::int64_t>(random_());
    return draw % one_of_ == 0 ? 2 + draw % (most_ - 1) : most_;
  }

 private:
  std::mt19937 random_;
  std::int64_t most_, one_of_ = 0;
};

using SampleRow = std::array<std::int64_t, 3>;

/// The samples of the document of sentences [first, last).
void append_document(std::int64_t first, std::int64_t last, std::int64_t fewest,
                     std::span<const std::int32_t> lengths, WantedTokens& wanted,
                     std::vector<SampleRow>& out) {
  std::int64_t remaining = last - first;
  if (remaining < fewest) return;
  const auto sentences =
      lengths.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(remaining));
  if (remaining > 1 &&
      std::ranges::any_of(sentences, [](std::int32_t n) { return n > kLongSentence; }))
    return;
  std::int64_t begin = first, tokens = 0, count = 0, target = wanted.next();
  for (std::int64_t sentence = first; sentence < last; ++sentence) {
    tokens += lengths[static_cast<std::size_t>(sentence)];
    ++count;
    --remaining;
    const bool full = tokens >= target && remaining > 1 && count >= fewest;
    if (!full && remaining > 0) continue;
    out.push_back({begin, sentence + 1, target});
    begin = sentence + 1;
    target = wanted.next();
    tokens = count = 0;
  }
}

template <typename T>
IntegerArray stored_rows(const std::vector<SampleRow>& rows, NpyType type) {
  std::vector<T> out;
  out.reserve(3 * rows.size());
  for (const SampleRow& row : rows) {
    for (const std::int64_t value : row) out.push_back(static_cast<T>(value));
  }
  return {std::span<const T>(out), type, 3};
}

}  // namespace

IntegerArray sentence_map(const SentenceMapRequest& request,
                          std::span<const std::int64_t> documents,
                          std::span<const std::int32_t> lengths) {
  check(request.most_tokens > 1 && !documents.empty(), "samples of ", request.most_tokens,
        " tokens from ", documents.size(), " boundaries");
  std::vector<SampleRow> rows;
  WantedTokens wanted(request);
  // Without a number of samples, one epoch; an epoch without samples would go on for ever.
  for (std::size_t seen = 0; request.samples ? std::ssize(rows) < *request.samples : seen == 0;) {
    for (std::size_t d = 0; d + 1 < documents.size(); ++d)
      append_document(documents[d], documents[d + 1], request.fewest_sentences, lengths, wanted,
                      rows);
    if (rows.size() == seen)
      fail(Fault::Data, "no document has a sample: of ", documents.size() - 1,
           " documents none has ", "at least ", request.fewest_sentences,
           " sentences, all of at most 512 tokens; make the files with --split-sentences, or give ",
           "other data");
    seen = rows.size();
    if (!request.samples) break;
  }
  std::mt19937_64 random(std::uint64_t{request.seed} + 1);
  for (std::size_t i = rows.size(); i-- > 1;) std::swap(rows[i], rows[random() % (i + 1)]);
  return lengths.size() > std::numeric_limits<std::uint32_t>::max()
             ? stored_rows<std::uint64_t>(rows, NpyType::U64)
             : stored_rows<std::uint32_t>(rows, NpyType::U32);
}

}  // namespace tessera
