#include "tessera/token_files/sentence_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tessera/base/counted.h"
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
using OnSample = FunctionRef<void(const SampleRow& row)>;

/// The samples of a document.
void walk_document(std::int64_t first, std::span<const std::int32_t> lengths, std::int64_t fewest,
                   WantedTokens& wanted, OnSample on_sample) {
  std::int64_t remaining = std::ssize(lengths);
  if (remaining < fewest) return;
  if (remaining > 1 &&
      std::ranges::any_of(lengths, [](std::int32_t n) { return n > kLongSentence; }))
    return;
  std::int64_t begin = first, end = first, tokens = 0, target = wanted.next();
  for (const std::int32_t length : lengths) {
    tokens += length;
    ++end;
    --remaining;
    const bool full = tokens >= target && remaining > 1 && end - begin >= fewest;
    if (!full && remaining > 0) continue;
    on_sample({begin, end, target});
    begin = end;
    target = wanted.next();
    tokens = 0;
  }
}

/// The samples of as many epochs as it takes; returns how many there are.
std::int64_t walk_samples(const SentenceMapRequest& request, WalkDocuments walk,
                          OnSample on_sample) {
  check(request.most_tokens > 1, "samples of ", request.most_tokens, " tokens");
  WantedTokens wanted(request);
  std::int64_t samples = 0, documents = 0;
  const auto on_document = [&](std::int64_t first, std::span<const std::int32_t> lengths) {
    ++documents;
    walk_document(first, lengths, request.fewest_sentences, wanted, [&](const SampleRow& row) {
      ++samples;
      on_sample(row);
    });
  };
  // Without a number of samples, one epoch; an epoch without samples would go on for ever.
  do {
    const std::int64_t before = samples;
    documents = 0;
    walk(on_document);
    if (samples == before)
      fail(Fault::Data, "no document has a sample: none of ", documents, " has ", "at least ",
           counted(request.fewest_sentences, "sentence"),
           ", all of at most 512 tokens; make the files with --split-sentences, or give ",
           "other data");
  } while (samples < request.samples.value_or(0));
  return samples;
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

IntegerArray sentence_map(const SentenceMapRequest& request, std::int64_t sentences,
                          WalkDocuments walk) {
  std::vector<SampleRow> rows;
  walk_samples(request, walk, [&](const SampleRow& row) { rows.push_back(row); });
  std::mt19937_64 random(std::uint64_t{request.seed} + 1);
  for (std::size_t i = rows.size(); i-- > 1;) std::swap(rows[i], rows[random() % (i + 1)]);
  return sentences > std::int64_t{std::numeric_limits<std::uint32_t>::max()}
             ? stored_rows<std::uint64_t>(rows, NpyType::U64)
             : stored_rows<std::uint32_t>(rows, NpyType::U32);
}

std::int64_t sentence_map_size(const SentenceMapRequest& request, WalkDocuments walk) {
  return walk_samples(request, walk, [](const SampleRow&) {});
}

}  // namespace tessera
