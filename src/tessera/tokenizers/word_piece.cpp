/// WordPiece: of each word the longest token that it begins with, and so on behind that.

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/model.h"

namespace tessera::tokenizer {

namespace {

class WordPiece : public Model {
 public:
  explicit WordPiece(const JsonPart& part)
      : unknown_text_(part.text("unk_token", "[UNK]")),
        prefix_(part.text("continuing_subword_prefix", "##")),
        most_characters_(part.number("max_input_chars_per_word", 100)) {
    read_vocabulary(part.part("vocab"), tokens_);
    count_ = static_cast<std::int32_t>(tokens_.count());
    unknown_ = tokens_.find(unknown_text_);
    for (std::size_t i = 0; i < tokens_.count(); ++i) {
      const std::string_view token = tokens_.text(i);
      longest_ = std::max(longest_, token.size());
      if (starts_with(token, prefix_)) continuing_.add(token.substr(prefix_.size()), tokens_.id(i));
    }
  }

  void encode(std::string_view piece, ModelScratch&, Ids& out) const final {
    const std::size_t before = out.size();
    if (count_characters(piece) <= most_characters_ && append_tokens(piece, out)) return;
    if (unknown_ == kNoId)
      fail(Fault::Data, "the word '", piece.substr(0, 60),
           "' cannot be split into tokens, and there is no unknown token '", unknown_text_,
           "'; use a tokenizer that has it");
    out.resize(before);
    out.push_back(unknown_);
  }

  std::size_t bytes_of(std::int32_t id, bool first) const final {
    const std::size_t size = spelled_bytes(tokens_, id, unknown_);
    return first || size < prefix_.size() ? size : size - prefix_.size();
  }

 private:
  /// False: at some place no token fits.
  bool append_tokens(std::string_view piece, Ids& out) const {
    for (std::size_t begin = 0; begin < piece.size();) {
      const TokenTable& table = begin == 0 ? tokens_ : continuing_;
      std::size_t size = std::min(piece.size() - begin, longest_);
      std::int32_t id = kNoId;
      for (; size > 0; --size) {
        const bool within = begin + size < piece.size() && is_continuation(piece[begin + size]);
        if (!within) id = table.find(piece.substr(begin, size));
        if (id != kNoId) break;
      }
      if (id == kNoId) return false;
      out.push_back(id);
      begin += size;
    }
    return true;
  }
  static bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

  std::string unknown_text_, prefix_;
  std::int64_t most_characters_;
  std::int32_t unknown_ = kNoId;
  TokenTable continuing_;    // without the prefix
  std::size_t longest_ = 0;  // bytes of a token
};

}  // namespace

std::unique_ptr<Model> make_word_piece(const JsonPart& part) {
  return std::make_unique<WordPiece>(part);
}

}  // namespace tessera::tokenizer
