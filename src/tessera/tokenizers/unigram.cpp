/// Unigram: the pieces whose log-probabilities have the greatest sum (Kudo 2018, arXiv 1804.10959).

#include <algorithm>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/byte_trie.h"
#include "tessera/tokenizers/model.h"

namespace tessera::tokenizer {

namespace {

constexpr double kUnknownPenalty = 10;  // an unknown character costs so much more than any piece

class Unigram : public Model {
 public:
  explicit Unigram(const JsonPart& part) {
    const std::size_t count = part.count("vocab");
    const JsonPart list = part.part("vocab");
    for (std::size_t i = 0; i < count; ++i) {
      const nlohmann::json& entry = list.json()[i];
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
        list.at(i).bad("it is ", JsonPart::shown(entry),
                       " where a piece and its score belong; restore the file");
      tokens_.add(entry[0].get_ref<const std::string&>(), static_cast<std::int32_t>(i));
      scores_.push_back(entry[1].get<double>());
      least_ = std::min(least_, scores_.back());
    }
    count_ = static_cast<std::int32_t>(count);
    if (part.has("unk_id")) unknown_ = part.number("unk_id");
    if (unknown_ != kNoId && unknown_ >= count_)
      part.bad("unk_id is ", unknown_, " but \"vocab\" has ", count_, " pieces; restore the file");
    if (part.flag("byte_fallback", false)) bytes_ = byte_tokens(tokens_);
    ByteTrie::Keys keys;
    for (std::size_t i = 0; i < tokens_.count(); ++i)
      keys.emplace_back(tokens_.text(i), tokens_.id(i));
    trie_ = ByteTrie(std::move(keys));
  }

  void encode(std::string_view piece, ModelScratch& scratch, Ids& out) const final {
    find_best(piece, scratch.best);
    // From the end: unknown characters side by side are one.
    const std::size_t before = out.size();
    std::size_t unknown_end = 0;
    for (std::size_t end = piece.size(); end > 0;) {
      const ModelScratch::Best& best = scratch.best[end];
      const auto begin = static_cast<std::size_t>(best.begin);
      if (best.id == unknown_) {
        if (unknown_end == 0) unknown_end = end;
        if (begin == 0) append_unknown(piece.substr(0, unknown_end), out);
      } else {
        if (unknown_end > 0) append_unknown(piece.substr(end, unknown_end - end), out);
        unknown_end = 0;
        out.push_back(best.id);
      }
      end = begin;
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
  }

  std::size_t bytes_of(std::int32_t id, bool) const final {
    if (std::ranges::find(bytes_, id) != bytes_.end()) return 1;
    return spelled_bytes(tokens_, id, unknown_);
  }

 private:
  void find_best(std::string_view piece, std::vector<ModelScratch::Best>& best) const {
    best.assign(piece.size() + 1, {});
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::int32_t id) {
      ModelScratch::Best& at = best[end];
      if (at.begin == kNoId || score > at.score) at = {score, static_cast<std::int32_t>(begin), id};
    };
    for (std::size_t at = 0; at < piece.size();) {
      const auto size =
          std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(piece, at).size));
      const double so_far = best[at].score;
      bool alone = false;  // the character is a piece
      trie_.prefixes(piece.substr(at), [&](std::size_t length, std::int32_t id) {
        offer(at, at + length, scores_[static_cast<std::size_t>(id)] + so_far, id);
        alone |= length == size;
      });
      if (!alone) {
        if (unknown_ == kNoId)
          fail(Fault::Data, "the character '", piece.substr(at, size),
               "' is not a piece, and the tokenizer has no unk_id; use one that has");
        offer(at, at + size, least_ - kUnknownPenalty + so_far, unknown_);
      }
      at += size;
    }
  }

  /// In reverse, as all that is appended.
  void append_unknown(std::string_view text, Ids& out) const {
    const std::int32_t known = tokens_.find(text);
    if (known != kNoId) return out.push_back(known);
    const bool spelled = !bytes_.empty() && std::ranges::all_of(text, [&](char c) {
      return bytes_[static_cast<unsigned char>(c)] != kNoId;
    });
    if (!spelled) return out.push_back(unknown_);
    for (auto c = text.rbegin(); c != text.rend(); ++c)
      out.push_back(bytes_[static_cast<unsigned char>(*c)]);
  }

  std::vector<double> scores_;
  double least_ = std::numeric_limits<double>::infinity();
  std::int32_t unknown_ = kNoId;
  std::vector<std::int32_t> bytes_;  // with byte_fallback: by byte
  ByteTrie trie_;
};

}  // namespace

std::unique_ptr<Model> make_unigram(const JsonPart& part) {
  return std::make_unique<Unigram>(part);
}

}  // namespace tessera::tokenizer
