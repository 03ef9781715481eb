#include "tessera/tokenizers/model.h"

#include "tessera/base/text.h"

namespace tessera::tokenizer {

namespace {

class WordLevel : public Model {
 public:
  explicit WordLevel(const JsonPart& part) {
    read_vocabulary(part.part("vocab"), tokens_);
    count_ = static_cast<std::int32_t>(tokens_.count());
    const std::string unknown = part.text("unk_token", "<unk>");
    unknown_ = tokens_.find(unknown);
    if (unknown_ == kNoId) missing_ = unknown;
  }

  void encode(std::string_view piece, ModelScratch&, Ids& out) const final {
    const std::int32_t id = tokens_.find(piece);
    if (id == kNoId && unknown_ == kNoId)
      fail(Fault::Data, "'", piece.substr(0, 60), "' is not a token, nor is the unknown token '",
           missing_, "'; use a tokenizer that has one, or leave the text out");
    out.push_back(id == kNoId ? unknown_ : id);
  }

  std::size_t bytes_of(std::int32_t id, bool) const final {
    return spelled_bytes(tokens_, id, unknown_);
  }

 private:
  std::int32_t unknown_ = kNoId;
  std::string missing_;
};

constexpr Maker<std::unique_ptr<Model>> kModels[] = {
    {"BPE", make_bpe},
    {"WordPiece", make_word_piece},
    {"Unigram", make_unigram},
    {"WordLevel", make_word_level},
};

}  // namespace

std::unique_ptr<Model> make_word_level(const JsonPart& part) {
  return std::make_unique<WordLevel>(part);
}

std::unique_ptr<Model> make_model(const JsonPart& part) {
  if (part.has("type")) return make_by_type<std::unique_ptr<Model>>(kModels, part, "model");
  if (part.has("merges")) return make_bpe(part);
  if (part.has("max_input_chars_per_word")) return make_word_piece(part);
  if (part.has("vocab") && part.part("vocab").json().is_array()) return make_unigram(part);
  return make_word_level(part);
}

std::size_t spelled_bytes(const TokenTable& tokens, std::int32_t id, std::int32_t unknown) {
  std::string_view spelled;
  return id != unknown && tokens.token(id, spelled) ? spelled.size() : 0;
}

void read_vocabulary(const JsonPart& part, TokenTable& tokens) {
  if (!part.json().is_object())
    part.bad("it is ", JsonPart::shown(part.json()),
             " where an object of tokens and ids is expected; restore the file");
  for (auto it = part.json().begin(); it != part.json().end(); ++it)
    tokens.add(it.key(), id_of_json(*it, part, text("the id of '", it.key().substr(0, 60), "'")));
}

std::vector<std::int32_t> byte_tokens(const TokenTable& tokens) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::vector<std::int32_t> out;
  for (std::size_t byte = 0; byte < 256; ++byte)
    out.push_back(tokens.find(text("<0x", kDigits[byte >> 4], kDigits[byte & 15], ">")));
  return out;
}

}  // namespace tessera::tokenizer
