#pragma once
/// The tokenizer.json that says what a class of transformers makes of a folder.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/settings.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera::tokenizer {

/// Files that hold the vocabulary of a class, beside tokenizer.json; empty: no such class here.
std::vector<std::string> files_of_class(std::string_view class_name);

/// What the settings' class makes of the files. A class takes the vocabulary of tokenizer.json
/// alone and brings normalizer, pre-tokenizer and decoder of its own; only TokenizersBackend has
/// tokenizer.json as it is. Fills the settings' defaults.
/// Errors: Fault::Data: a class that this program does not have; files that it does not take.
nlohmann::json document_of_class(const TokenizerFiles& files, nlohmann::json document,
                                 Settings& settings, const std::string& where);

/// Adds the settings' tokens to a document, as transformers adds them behind what is there; ids of
/// tokens in its post-processor; and the post-processor of `add_bos_token` and `add_eos_token`,
/// which do not count beside a tokenizer.json (`from_document`).
void add_settings(nlohmann::json& document, const Settings& settings, bool from_document);

/// The vocabulary of a .model of SentencePiece, as a class of transformers takes it.
struct ModelVocabulary {
  nlohmann::json vocabulary;       // pieces and scores
  std::string charsmap;            // in base64; empty: none
  std::vector<TokenText> symbols;  // control and user-defined pieces
};
ModelVocabulary model_vocabulary(const std::string& bytes, const std::string& file);
/// The merges whose products are pieces too: of a vocabulary of pieces and ids.
nlohmann::json merges_of_pieces(const nlohmann::json& ids);
/// As transformers reads a .model of which no class is known. Fills the settings' defaults.
nlohmann::json document_of_model(const std::string& bytes, Settings& settings,
                                 const std::string& file);

}  // namespace tessera::tokenizer
