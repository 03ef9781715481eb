/// How the merges of a text are found: an index of where each pair stands, and a queue of pairs by
/// how often they do, so that a merge costs what it changes.

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tokenizers/bpe.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/tokenizers/text_pieces.h"

namespace tessera {

namespace {

constexpr std::int32_t kNowhere = -1, kMerged = -1;
constexpr std::int64_t kLeastTimes = 2;  // a pair that stands once says nothing of other texts

/// The distinct pieces of a text as rows of tokens, one behind the other. A token has the place
/// where it begins.
class Pieces {
 public:
  explicit Pieces(std::string_view utf8);

  struct Candidate {
    std::int64_t times = 0;
    std::uint64_t pair = 0;
    /// The queue's top is the greatest: the most frequent, of several the one with the least ids.
    bool operator<(const Candidate& other) const {
      return times != other.times ? times < other.times : pair > other.pair;
    }
  };
  /// The pair to merge next; times below kLeastTimes: there is none.
  Candidate take_most_frequent();
  /// Writes `product` wherever the pair stands.
  void merge(std::uint64_t pair, std::int32_t product);

 private:
  struct Facts {
    std::int64_t times = 0;
    std::vector<std::int32_t> places;  // of the left token; some may be merged by now
  };
  std::uint64_t pair_at(std::int32_t left, std::int32_t right) const {
    return static_cast<std::uint64_t>(ids_[index(left)]) << 32 |
           static_cast<std::uint32_t>(ids_[index(right)]);
  }
  static std::size_t index(std::int32_t place) { return static_cast<std::size_t>(place); }
  void come(std::int32_t left, std::int32_t right);
  void go(std::int32_t left, std::int32_t right);

  std::vector<std::int32_t> ids_, before_, next_;  // by place
  std::vector<std::int64_t> times_;                // how often its piece is in the text
  std::unordered_map<std::uint64_t, Facts> pairs_;
  std::vector<std::uint64_t> grown_;  // pairs that came since the queue was last told
  std::priority_queue<Candidate> queue_;
};

}  // namespace

Bpe Bpe::learn(std::string_view utf8, std::int64_t size) {
  require(size >= kByteTokens, "a vocabulary of ", size, " tokens has no room for the ",
          kByteTokens, " bytes; give at least ", kByteTokens);
  Bpe out;
  Pieces pieces(utf8);
  while (out.size() < size) {
    const Pieces::Candidate best = pieces.take_most_frequent();
    if (best.times < kLeastTimes) break;
    const auto left = static_cast<std::int32_t>(best.pair >> 32),
               right = static_cast<std::int32_t>(best.pair & 0xFFFF'FFFF);
    // Where two merges spell one token, the later one may bring a pair back that was merged before.
    out.add(left, right);
    pieces.merge(best.pair, out.product(left, right));
  }
  return out;
}

namespace {

Pieces::Pieces(std::string_view utf8) {
  std::unordered_map<std::string_view, std::int64_t> times;
  std::vector<std::string_view> order;  // of the text, so that no order of a table matters
  while (!utf8.empty()) {
    const std::string_view piece = take_piece(utf8);
    const auto [known, added] = times.try_emplace(piece, 0);
    if (added) order.push_back(piece);
    ++known->second;
  }
  std::int64_t bytes = 0;
  for (const std::string_view piece : order) bytes += std::ssize(piece);
  if (bytes > std::numeric_limits<std::int32_t>::max())
    fail(Fault::Data, "the text has ", bytes_text(bytes),
         " of distinct words, but a vocabulary is learned from at most 2 GiB; use less text");
  for (const std::string_view piece : order) {
    const auto begin = static_cast<std::int32_t>(ids_.size());
    const std::int64_t of_piece = times.at(piece);
    for (const char c : piece) {
      const auto place = static_cast<std::int32_t>(ids_.size());
      ids_.push_back(id_of_byte(static_cast<unsigned char>(c)));
      before_.push_back(place == begin ? kNowhere : place - 1);
      next_.push_back(place + 1);
      times_.push_back(of_piece);
      if (place > begin) come(place - 1, place);
    }
    next_.back() = kNowhere;
  }
}

void Pieces::come(std::int32_t left, std::int32_t right) {
  const std::uint64_t pair = pair_at(left, right);
  Facts& facts = pairs_[pair];
  facts.times += times_[index(left)];
  facts.places.push_back(left);
  grown_.push_back(pair);
}

void Pieces::go(std::int32_t left, std::int32_t right) {
  pairs_[pair_at(left, right)].times -= times_[index(left)];
}

Pieces::Candidate Pieces::take_most_frequent() {
  std::ranges::sort(grown_);
  grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
  for (const std::uint64_t pair : grown_) queue_.push({pairs_[pair].times, pair});
  grown_.clear();
  while (!queue_.empty()) {
    Candidate out = queue_.top();
    queue_.pop();
    const auto facts = pairs_.find(out.pair);
    if (facts == pairs_.end()) continue;
    if (facts->second.times == out.times) return out;
    // It became rarer since it was put there.
    out.times = facts->second.times;
    if (out.times >= kLeastTimes) queue_.push(out);
  }
  return {};
}

void Pieces::merge(std::uint64_t pair, std::int32_t product) {
  std::vector<std::int32_t> places = std::move(pairs_[pair].places);
  std::ranges::sort(places);  // of three equal tokens in a row the first two are merged
  for (const std::int32_t left : places) {
    const std::int32_t right = next_[index(left)];
    if (ids_[index(left)] == kMerged || right == kNowhere || pair_at(left, right) != pair) continue;
    const std::int32_t before = before_[index(left)], after = next_[index(right)];
    if (before != kNowhere) go(before, left);
    if (after != kNowhere) go(right, after);
    ids_[index(left)] = product;
    ids_[index(right)] = kMerged;
    next_[index(left)] = after;
    if (after != kNowhere) before_[index(after)] = left;
    if (before != kNowhere) come(before, left);
    if (after != kNowhere) come(left, after);
  }
  pairs_.erase(pair);
}

}  // namespace

}  // namespace tessera
