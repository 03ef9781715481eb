/// The parts of a tokenizer, from its files.

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/tokenizers/files.h"
#include "tessera/tokenizers/normalizers.h"
#include "tessera/tokenizers/parts.h"
#include "tessera/tokenizers/sentence_piece.h"

namespace tessera {

void Tokenizer::Parts::read_document(const tokenizer::JsonPart& root) {
  if (root.has("version") && root.text("version") != "1.0")
    root.bad(
        "version is '", root.text("version").substr(0, 60),
        "' but only 1.0 is supported; write the file with a version of its library that uses it");
  for (const char* const ignored : {"truncation", "padding"}) {
    if (root.has(ignored))
      notices.push_back(
          text("the tokenizer's ", ignored, " is not used: texts are not truncated or padded"));
  }
  if (root.has("normalizer")) normalizer = tokenizer::make_normalizer(root.part("normalizer"));
  if (root.has("pre_tokenizer"))
    pre_tokenizer = tokenizer::make_pre_tokenizer(root.part("pre_tokenizer"));
  model = tokenizer::make_model(root.part("model"));
  added = tokenizer::AddedTokens(root, *model, normalizer, notices);
  if (root.has("post_processor"))
    templates = tokenizer::make_templates(root.part("post_processor"));
  if (root.has("decoder")) decoder = tokenizer::make_decoder(root.part("decoder"));
}

void Tokenizer::Parts::read_use(const tokenizer::JsonPart& config,
                                const tokenizer::JsonPart& root) {
  if (config.has("model_input_names")) {
    const nlohmann::json& names = config.json()["model_input_names"];
    if (!names.is_array())
      config.bad("model_input_names is not a list; correct it, or leave it out");
    types = std::ranges::find(names, "token_type_ids") != names.end();
  }
  keeps_end =
      root.has("truncation") && root.part("truncation").text("direction", "Right") == "Left";
  if (!config.has("truncation_side")) return;
  const std::string side = config.text("truncation_side");
  if (side != "left" && side != "right")
    config.bad("truncation_side is '", side.substr(0, 60), "', but can be left or right; correct ",
               "it, or leave it out for right");
  keeps_end = side == "left";
}

void Tokenizer::Parts::read_model(const std::string& bytes, const tokenizer::JsonPart& place) {
  const tokenizer::SentencePieceFile file = tokenizer::read_sentence_piece(
      bytes, tokenizer::shown_file(where, tokenizer::kSentencePiece));
  normalizer = tokenizer::sentence_piece_normalizer(file, place);
  model = tokenizer::sentence_piece_model(file);
  decoder = tokenizer::sentence_piece_decoder(file);
  added = tokenizer::AddedTokens(place, *model, normalizer, notices);
  const auto id_of = [&](std::int32_t id) {
    return id >= 0 && id < model->count() ? std::optional(id) : std::nullopt;
  };
  special.unk = id_of(file.unk), special.pad = id_of(file.pad);
  special.bos = id_of(file.bos), special.eos = id_of(file.eos);
}

}  // namespace tessera
