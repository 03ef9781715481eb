#pragma once
/// What the classes of tokenizers are made of: helpers of their builders.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tessera/tokenizers/settings.h"

namespace tessera::tokenizer {

/// What a class is made of: the vocabulary and what the files say beside it.
struct ClassParts {
  Settings& settings;
  nlohmann::json model;     // with vocabulary and merges, of tokenizer.json or other files
  nlohmann::json charsmap;  // a Precompiled normalizer, or null
  bool from_model = false;

  JsonPart keys() const { return settings.part(); }
  /// The token of a role that the class cannot do without.
  std::string need(const char* role) const {
    const TokenText* const token = settings.role(role);
    if (token == nullptr)
      keys().bad("\"", role, "\" is null, but tokenizer_class ", settings.class_name,
                 " requires it; give the token");
    return token->content;
  }
  /// A token that is given as a text alone takes the white space before it along.
  void take_blanks_before(std::string_view role);
};

nlohmann::json metaspace(const char* scheme, bool split);
/// Parts one after another: of "normalizers", "pretokenizers", "decoders".
nlohmann::json sequence(const char* key, nlohmann::json parts);
nlohmann::json replacing(const char* what, const char* by);
nlohmann::json replacing_regex(const char* regex, const char* by);

/// "bos_token:0 A:0 ...": roles, the texts A and B, each with its type id.
nlohmann::json frame_of(const ClassParts& parts, std::string_view single, std::string_view pair);

/// Of pieces with scores.
void build_albert(ClassParts& parts, nlohmann::json& out);
void build_camembert(ClassParts& parts, nlohmann::json& out);
void build_deberta_v2(ClassParts& parts, nlohmann::json& out);
void build_pegasus(ClassParts& parts, nlohmann::json& out);
void build_t5(ClassParts& parts, nlohmann::json& out);
void build_xlm_roberta(ClassParts& parts, nlohmann::json& out);

}  // namespace tessera::tokenizer
