#pragma once
/// What the files beside a vocabulary say of a tokenizer: tokenizer_config.json,
/// special_tokens_map.json, added_tokens.json.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/tokenizers/json_part.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera::tokenizer {

/// A token as these files describe it.
struct TokenText {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, special = false;
  std::optional<bool> normalized = std::nullopt;  // not said: unless it is special
  bool plain = true;                              // its text alone is there
  friend bool operator==(const TokenText&, const TokenText&) = default;
};

/// The files as transformers joins them (tokenization_utils_base.py, _from_pretrained):
/// `added_tokens_decoder` of tokenizer_config.json stands for special_tokens_map.json,
/// added_tokens.json and the added tokens of tokenizer.json; without it special_tokens_map.json
/// goes before tokenizer_config.json.
struct Settings {
  std::string class_name;  // empty: no file says one
  nlohmann::json config;   // of tokenizer_config.json
  std::string file;        // its path, for messages

  /// By role, as "bos_token", in the order in which they are added; nullopt: there is none.
  std::vector<std::pair<std::string, std::optional<TokenText>>> roles;
  std::set<std::string, std::less<>> given;  // roles that the files name, if only to say null
  /// Special tokens without a role: "extra_special_tokens", and "additional_special_tokens" of
  /// special_tokens_map.json, which count where there are none of the first.
  std::optional<std::vector<TokenText>> extra, additional;
  std::map<std::int32_t, TokenText> added;  // by their ids in the files
  bool own_frame = false;                   // the class brings it, whatever add_bos_token says

  JsonPart part() const { return {config, file}; }
  /// The token of a role; null: it has none.
  const TokenText* role(std::string_view name) const;
  /// Gives a role a token, unless the files name the role.
  void set_default(std::string_view role, std::string_view token);
};

/// Errors: Fault::Data: no JSON, or something else than is meant, by file and key; a key that
/// changes ids and is not read. `document`: tokenizer.json, or an object without anything.
Settings read_settings(const TokenizerFiles& files, const nlohmann::json& document,
                       const std::string& where);

/// For messages: the path of a file of the tokenizer at `where`, a folder or a file.
std::string shown_file(const std::string& where, std::string_view name);

}  // namespace tessera::tokenizer
