#pragma once
/// Which files make a tokenizer, and what they say as one document.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/settings.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera::tokenizer {

inline constexpr const char *kTokenizerJson = "tokenizer.json", *kVocabTxt = "vocab.txt",
                            *kVocabJson = "vocab.json", *kMergesTxt = "merges.txt",
                            *kSentencePiece = "tokenizer.model",
                            *kConfigJson = "tokenizer_config.json",
                            *kSpecialMapJson = "special_tokens_map.json",
                            *kAddedTokensJson = "added_tokens.json",
                            *kChatTemplate = "chat_template.jinja";

/// Of all files that there can be.
inline constexpr const char* kTokenizerFileNames[] = {
    kTokenizerJson, kVocabTxt,       kVocabJson,       kMergesTxt,   kSentencePiece,
    kConfigJson,    kSpecialMapJson, kAddedTokensJson, kChatTemplate};

/// Whether a file of this name in a folder may be a tokenizer's: these, and other names of a
/// .model.
bool is_tokenizer_file(std::string_view name);

/// Whether a folder holds those of a tokenizer.
bool has_tokenizer_files(const std::string& folder);
/// The files of a tokenizer at `path`, a file or a folder. Errors: Fault::Data: none is there.
TokenizerFiles read_tokenizer_files(const std::string& path);

/// Parses one of the files. Errors: Fault::Data: no JSON, or no object, with the place.
nlohmann::json parse_json_file(const std::string& bytes, const std::string& file);

/// What the files say as one tokenizer.json, and who has which role. Without a class the files are
/// read by what they are: a vocab.txt as BERT's, vocab.json and merges.txt as GPT-2's; a .model is
/// SentencePiece's own, and the document has its added tokens alone.
struct TokenizerDocument {
  nlohmann::json json;
  Settings settings;
  bool of_sentence_piece = false;  // its model is the .model
};
TokenizerDocument document_of(const TokenizerFiles& files, const std::string& where);

/// The file of a tokenizer at `where` that has its vocabulary, for messages.
std::string main_file(const TokenizerFiles& files, const std::string& where);

}  // namespace tessera::tokenizer
