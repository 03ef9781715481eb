/// Byte-pair encoding as tokenizer.json has it: characters that are tokens, merged by ranks.

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/merge_table.h"
#include "tessera/tokenizers/model.h"

namespace tessera::tokenizer {

namespace {

class BpeModel : public Model {
 public:
  explicit BpeModel(const JsonPart& part)
      : prefix_(part.text("continuing_subword_prefix", "")),
        suffix_(part.text("end_of_word_suffix", "")),
        unknown_text_(part.text("unk_token", "")),
        has_unknown_(part.has("unk_token")),
        fuses_unknown_(part.flag("fuse_unk", false)),
        ignores_merges_(part.flag("ignore_merges", false)) {
    if (part.has("dropout") && part.real("dropout") != 0)
      part.bad("dropout is ", part.real("dropout"),
               ", which merges at random, so a text's ids would vary; set it to null");
    read_vocabulary(part.part("vocab"), tokens_);
    count_ = static_cast<std::int32_t>(tokens_.count());
    if (part.flag("byte_fallback", false)) bytes_ = byte_tokens(tokens_);
    if (has_unknown_) unknown_ = tokens_.find(unknown_text_);
    read_merges(part);
  }

  void encode(std::string_view piece, ModelScratch& scratch, Ids& out) const final {
    if (ignores_merges_) {
      if (const std::int32_t id = tokens_.find(piece); id != kNoId) return out.push_back(id);
    }
    const std::size_t before = out.size();
    std::size_t unknown = 0;  // characters that wait to be told as unknown
    for (std::size_t at = 0; at < piece.size();) {
      const auto size =
          std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(piece, at).size));
      const std::string_view symbol =
          symbol_of(piece.substr(at, size), at == 0, at + size == piece.size(), scratch.text);
      at += size;
      if (const std::int32_t id = tokens_.find(symbol); id != kNoId) {
        if (unknown > 0) out.push_back(unknown_);
        unknown = 0;
        out.push_back(id);
      } else if (!append_bytes(symbol, out) && has_unknown_) {
        if (unknown_ == kNoId)
          fail(Fault::Data, "the character '", symbol,
               "' is not a token, nor is the unknown token '", unknown_text_,
               "'; use a tokenizer that has it");
        if (unknown > 0 && !fuses_unknown_) out.push_back(unknown_);
        ++unknown;
      }
    }
    if (unknown > 0) out.push_back(unknown_);
    merges_.apply(out, before, scratch.merges);
  }

  std::size_t bytes_of(std::int32_t id, bool first) const final {
    if (std::ranges::find(bytes_, id) != bytes_.end()) return 1;
    std::string_view spelled;
    if (id == unknown_ || !tokens_.token(id, spelled)) return 0;
    if (!first && starts_with(spelled, prefix_)) spelled.remove_prefix(prefix_.size());
    const bool ends = !suffix_.empty() && spelled.ends_with(suffix_);
    return spelled.size() - (ends ? suffix_.size() : 0);
  }

 private:
  std::string_view symbol_of(std::string_view character, bool first, bool last,
                             std::string& scratch) const {
    const bool prefixed = !first && !prefix_.empty(), suffixed = last && !suffix_.empty();
    if (!prefixed && !suffixed) return character;
    scratch.clear();
    if (prefixed) scratch += prefix_;
    scratch += character;
    if (suffixed) scratch += suffix_;
    return scratch;
  }

  /// Whether each byte has a token.
  bool append_bytes(std::string_view symbol, Ids& out) const {
    if (bytes_.empty()) return false;
    for (const char c : symbol) {
      if (bytes_[static_cast<unsigned char>(c)] == kNoId) return false;
    }
    for (const char c : symbol) out.push_back(bytes_[static_cast<unsigned char>(c)]);
    return true;
  }

  void read_merges(const JsonPart& part) {
    const std::size_t count = part.count("merges");
    const JsonPart list = part.part("merges");
    merges_.reserve(count);
    std::string product;
    std::size_t rank = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const nlohmann::json& merge = list.json()[i];
      std::string_view left, right;
      if (merge.is_string()) {
        const std::string_view both = merge.get_ref<const std::string&>();
        if (starts_with(both, "#version")) continue;
        const std::size_t blank = both.find(' ');
        if (blank == both.npos || both.find(' ', blank + 1) != both.npos)
          list.bad("merge ", i + 1, " is ", JsonPart::shown(merge),
                   " where two tokens separated by a blank are expected; restore the file");
        left = both.substr(0, blank), right = both.substr(blank + 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        left = merge[0].get_ref<const std::string&>();
        right = merge[1].get_ref<const std::string&>();
      } else {
        list.bad("merge ", i + 1, " is ", JsonPart::shown(merge),
                 " where two tokens are expected; restore the file");
      }
      if (right.size() < prefix_.size())
        list.bad("merge ", i + 1, ": '", right, "' is shorter than continuing_subword_prefix '",
                 prefix_, "'; restore the file");
      product = left;
      product += right.substr(prefix_.size());
      const auto id = [&](std::string_view token) {
        const std::int32_t found = tokens_.find(token);
        if (found == kNoId)
          list.bad("merge ", i + 1, ", '", left.substr(0, 60), "' and '", right.substr(0, 60),
                   "': '", token.substr(0, 60), "' is not a token of \"vocab\"; restore the file");
        return found;
      };
      const std::int32_t a = id(left), b = id(right), made = id(product);
      merges_.add(a, b, {static_cast<std::int32_t>(rank++), made});
    }
  }

  std::string prefix_, suffix_, unknown_text_;
  bool has_unknown_, fuses_unknown_, ignores_merges_;
  std::int32_t unknown_ = kNoId;
  std::vector<std::int32_t> bytes_;  // with byte_fallback: by byte
  MergeTable merges_;
};

}  // namespace

std::unique_ptr<Model> make_bpe(const JsonPart& part) { return std::make_unique<BpeModel>(part); }

}  // namespace tessera::tokenizer
