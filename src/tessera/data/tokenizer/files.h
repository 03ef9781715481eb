#pragma once
/// Which files make a tokenizer, and what they say as one document.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/data/tokenizer.h"

namespace tessera::tokenizer {

inline constexpr const char *kTokenizerJson = "tokenizer.json", *kVocabTxt = "vocab.txt",
                            *kVocabJson = "vocab.json", *kMergesTxt = "merges.txt",
                            *kSentencePiece = "tokenizer.model",
                            *kConfigJson = "tokenizer_config.json",
                            *kSpecialMapJson = "special_tokens_map.json";

/// Whether a folder holds those of a tokenizer.
bool has_tokenizer_files(const std::string& folder);
/// The files of a tokenizer at `path`, a file or a folder. Errors: Fault::Data: none is there.
TokenizerFiles read_tokenizer_files(const std::string& path);

/// Parses one of the files. Errors: Fault::Data: no JSON, or no object, with the place.
nlohmann::json parse_json_file(const std::string& bytes, const std::string& file);

/// The files, but for a .model, as what tokenizer.json would say of them.
nlohmann::json document_of(const TokenizerFiles& files, const std::string& where);

/// The special tokens that the files or, without these, usual names give roles: role and token.
std::vector<std::pair<std::string, std::string>> named_special_tokens(const TokenizerFiles& files,
                                                                      const std::string& where);

}  // namespace tessera::tokenizer
