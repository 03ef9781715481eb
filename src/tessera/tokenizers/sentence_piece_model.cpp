/// Unigram and BPE as SentencePiece has them: with the arithmetic of floats, so that what is nearly
/// equal falls the same way, and with pieces that users defined, which are never split.

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/byte_trie.h"
#include "tessera/tokenizers/sentence_piece.h"

namespace tessera::tokenizer {

namespace {

/// Of a piece that a user defined: above that of any piece that is learned. Found by comparing.
constexpr double kDefinedScore = 0.1;

using Entries = std::vector<SentencePieceFile::Entry>;

/// What both have: the pieces by name, and what becomes of unknown characters.
class SentencePieceModel : public Model {
 public:
  explicit SentencePieceModel(const SentencePieceFile& file) : entries_(file.pieces) {
    count_ = static_cast<std::int32_t>(entries_.size());
    unknown_ = file.unk;
    ByteTrie::Keys matched, defined;
    for (std::int32_t id = count_; id-- > 0;) {  // of equal pieces the first counts
      const SentencePieceFile::Entry& entry = entries_[static_cast<std::size_t>(id)];
      tokens_.add(entry.piece, id);
      const bool reserved = entry.type == PieceType::Control || entry.type == PieceType::Unknown ||
                            entry.type == PieceType::Byte;
      if (!reserved) {
        pieces_.add(entry.piece, id);
        matched.emplace_back(entry.piece, id);
      }
      if (entry.type == PieceType::UserDefined) defined.emplace_back(entry.piece, id);
      if (entry.type != PieceType::Normal) continue;
      least_ = std::min(least_, entry.score);
    }
    trie_ = ByteTrie(std::move(matched));
    defined_ = ByteTrie(std::move(defined));
    if (file.byte_fallback) bytes_ = byte_tokens(tokens_);
  }

  std::size_t bytes_of(std::int32_t id, bool) const final {
    if (std::ranges::find(bytes_, id) != bytes_.end()) return 1;
    return spelled_bytes(tokens_, id, unknown_);
  }

  bool is_special(std::int32_t id) const final {
    return id >= 0 && id < count_ && type_of(id) == PieceType::Control;
  }

 protected:
  PieceType type_of(std::int32_t id) const { return entries_[static_cast<std::size_t>(id)].type; }
  float score_of(std::int32_t id) const { return entries_[static_cast<std::size_t>(id)].score; }

  /// Behind another unknown piece it is one with that, unless bytes stand for it.
  void append_piece(std::string_view piece, std::int32_t id, std::int32_t& before, Ids& out) const {
    if (id == unknown_ && !bytes_.empty()) {
      for (const char c : piece) {
        const std::int32_t byte = bytes_[static_cast<unsigned char>(c)];
        out.push_back(byte == kNoId ? unknown_ : byte);
      }
    } else if (!(id == unknown_ && before == unknown_)) {
      out.push_back(id);
    }
    before = id;
  }

  Entries entries_;
  TokenTable pieces_;  // that texts have
  ByteTrie trie_, defined_;
  std::vector<std::int32_t> bytes_;  // with byte_fallback: by byte
  std::int32_t unknown_ = 0;
  float least_ = std::numeric_limits<float>::max();
};

class SentencePieceUnigram : public SentencePieceModel {
 public:
  using SentencePieceModel::SentencePieceModel;

  void encode(std::string_view text, ModelScratch& scratch, Ids& out) const final {
    std::vector<ModelScratch::Best>& best = scratch.best;
    best.assign(text.size() + 1, {});
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::int32_t id) {
      ModelScratch::Best& at = best[end];
      if (at.begin == kNoId || score > at.score)
        at = {static_cast<float>(score), static_cast<std::int32_t>(begin), id};
    };
    const float unknown_score = least_ - 10.0F;
    for (std::size_t at = 0; at < text.size();) {
      const auto size =
          std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(text, at).size));
      const auto so_far = static_cast<float>(best[at].score);
      bool alone = false;
      trie_.prefixes(text.substr(at), [&](std::size_t length, std::int32_t id) {
        if (type_of(id) == PieceType::Unused) return;
        const bool defined = type_of(id) == PieceType::UserDefined;
        offer(at, at + length, defined ? kDefinedScore + so_far : score_of(id) + so_far, id);
        alone |= length == size;
      });
      if (!alone) offer(at, at + size, unknown_score + so_far, unknown_);
      at += size;
    }
    std::vector<std::size_t> ends;
    for (std::size_t end = text.size(); end > 0; end = static_cast<std::size_t>(best[end].begin))
      ends.push_back(end);
    std::int32_t before = kNoId;
    for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
      const auto begin = static_cast<std::size_t>(best[*end].begin);
      append_piece(text.substr(begin, *end - begin), best[*end].id, before, out);
    }
  }
};

class SentencePieceBpe : public SentencePieceModel {
 public:
  using SentencePieceModel::SentencePieceModel;

  void encode(std::string_view text, ModelScratch&, Ids& out) const final {
    std::vector<Symbol> symbols = symbols_of(text);
    std::priority_queue<Pair> agenda;
    std::unordered_map<std::string_view, std::size_t> cuts;  // of unused pieces
    const auto look = [&](std::int32_t left, std::int32_t right) {
      if (left < 0 || right < 0) return;
      const Symbol &a = symbols[static_cast<std::size_t>(left)],
                   &b = symbols[static_cast<std::size_t>(right)];
      if (a.frozen || b.frozen) return;
      const std::string_view both(a.piece.data(), a.piece.size() + b.piece.size());
      const std::int32_t id = pieces_.find(both);
      if (id == kNoId) return;
      agenda.push({score_of(id), left, right, both.size()});
      if (type_of(id) == PieceType::Unused) cuts[both] = a.piece.size();
    };
    for (std::int32_t i = 1; i < std::ssize(symbols); ++i) look(i - 1, i);
    while (!agenda.empty()) {
      const Pair top = agenda.top();
      agenda.pop();
      Symbol &a = symbols[static_cast<std::size_t>(top.left)],
             &b = symbols[static_cast<std::size_t>(top.right)];
      if (a.piece.empty() || b.piece.empty() || a.piece.size() + b.piece.size() != top.size)
        continue;
      a.piece = std::string_view(a.piece.data(), top.size);
      b.piece = {};
      a.next = b.next;
      if (a.next >= 0) symbols[static_cast<std::size_t>(a.next)].before = top.left;
      look(a.before, top.left);
      look(top.left, a.next);
    }
    std::int32_t before = kNoId;
    std::vector<std::string_view> rest;
    for (std::int32_t i = symbols.empty() ? -1 : 0; i >= 0;
         i = symbols[static_cast<std::size_t>(i)].next) {
      rest = {symbols[static_cast<std::size_t>(i)].piece};
      while (!rest.empty()) {  // an unused piece is what it was merged of
        const std::string_view piece = rest.back();
        rest.pop_back();
        const std::int32_t id = pieces_.find(piece);
        const auto cut = cuts.find(piece);
        if (id != kNoId && type_of(id) == PieceType::Unused && cut != cuts.end()) {
          rest.push_back(piece.substr(cut->second));
          rest.push_back(piece.substr(0, cut->second));
        } else {
          append_piece(piece, id == kNoId ? unknown_ : id, before, out);
        }
      }
    }
  }

 private:
  struct Symbol {
    std::string_view piece;
    std::int32_t before = -1, next = -1;
    bool frozen = false;
  };
  struct Pair {
    float score = 0;
    std::int32_t left = 0, right = 0;
    std::size_t size = 0;
    /// The queue's top is the greatest: the highest score, of several the leftmost.
    bool operator<(const Pair& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  std::vector<Symbol> symbols_of(std::string_view text) const {
    std::vector<Symbol> out;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t size = 0;
      defined_.prefixes(text.substr(at), [&](std::size_t length, std::int32_t) { size = length; });
      const bool frozen = size > 0;
      if (!frozen)
        size = std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(text, at).size));
      const auto number = static_cast<std::int32_t>(out.size());
      out.push_back({text.substr(at, size), number - 1, number + 1, frozen});
      at += size;
    }
    if (!out.empty()) out.back().next = -1;
    return out;
  }
};

}  // namespace

std::unique_ptr<Model> sentence_piece_model(const SentencePieceFile& file) {
  if (file.bpe) return std::make_unique<SentencePieceBpe>(file);
  return std::make_unique<SentencePieceUnigram>(file);
}

}  // namespace tessera::tokenizer
