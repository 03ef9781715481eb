/// Tokens and post-processors that the files beside a vocabulary ask for.

#include <algorithm>
#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/tokenizers/class_documents.h"

namespace tessera::tokenizer {

namespace {

using nlohmann::json;

/// Ids of a document's tokens, those that are added included.
class DocumentIds {
 public:
  explicit DocumentIds(const json& document) {
    if (const auto model = document.find("model"); model != document.end()) {
      if (const auto found = model->find("vocab"); found != model->end()) vocabulary_ = &*found;
    }
    if (vocabulary_ != nullptr && vocabulary_->is_array()) {
      for (std::size_t i = 0; i < vocabulary_->size(); ++i) {
        const json& piece = (*vocabulary_)[i];
        if (piece.is_array() && !piece.empty() && piece[0].is_string())
          pieces_[piece[0].get_ref<const std::string&>()] = i;  // of equal pieces the last
      }
    }
    next_ = vocabulary_ == nullptr ? 0 : vocabulary_->size();
    if (const auto added = document.find("added_tokens");
        added != document.end() && added->is_array()) {
      for (const json& token : *added) {
        if (token.is_object() && token.contains("content") && token["content"].is_string())
          add(token["content"].get_ref<const std::string&>());
      }
    }
  }

  void add(const std::string& token) {
    if (!token.empty() && of(token).is_null()) added_.emplace(token, next_++);
  }

  /// Null: it has none.
  json of(const std::string& token) const {
    if (const auto found = added_.find(token); found != added_.end()) return found->second;
    if (const auto found = pieces_.find(token); found != pieces_.end()) return found->second;
    if (vocabulary_ != nullptr && vocabulary_->is_object() && vocabulary_->contains(token))
      return (*vocabulary_)[token];
    return nullptr;
  }

 private:
  const json* vocabulary_ = nullptr;
  std::unordered_map<std::string, std::size_t> pieces_, added_;
  std::size_t next_ = 0;
};

/// In the order of TokenizersBackend: added tokens by their ids, roles, then the others.
std::vector<TokenText> tokens_to_add(const json& document, const Settings& settings) {
  std::vector<TokenText> out;
  std::set<std::string, std::less<>> known;
  if (const auto added = document.find("added_tokens"); added != document.end()) {
    for (const json& token : *added) {
      if (token.is_object()) known.insert(token.value("content", ""));
    }
  }
  for (const auto& [id, token] : settings.added) {
    out.push_back(token);
    known.insert(token.content);
  }
  const auto add = [&](const TokenText& token) {
    if (!known.contains(token.content) && std::ranges::find(out, token) == out.end())
      out.push_back(token);
  };
  for (const auto& [role, token] : settings.roles) {
    if (token) add(*token);
  }
  const auto& others = settings.extra ? settings.extra : settings.additional;
  if (others) std::ranges::for_each(*others, add);
  for (TokenText& token : out) {
    const bool has_role = std::ranges::any_of(settings.roles, [&](const auto& role) {
      return role.second && role.second->content == token.content;
    });
    if (token.plain || has_role) token.special = true;
  }
  return out;
}

json bos_and_eos_frame(const Settings& settings, bool counts) {
  const JsonPart part = settings.part();
  const auto token_if = [&](const char* key, const char* role) {
    return counts && part.flag(key, false) ? settings.role(role) : nullptr;
  };
  const TokenText *const bos = token_if("add_bos_token", "bos_token"), *const eos =
                                                                           token_if("add_eos_token",
                                                                                    "eos_token");
  if (bos == nullptr && eos == nullptr) return nullptr;
  json out = {{"type", "TemplateProcessing"}, {"special_tokens", json::object()}};
  const auto text_with = [&](const char* id, int type) {
    json items = json::array();
    const auto add = [&](const TokenText* token) {
      if (token == nullptr) return;
      items.push_back({{"SpecialToken", {{"id", token->content}, {"type_id", type}}}});
      out["special_tokens"][token->content] = {{"id", token->content}};
    };
    add(bos);
    items.push_back({{"Sequence", {{"id", id}, {"type_id", type}}}});
    add(eos);
    return items;
  };
  out["single"] = text_with("A", 0);
  out["pair"] = out["single"];
  for (json& item : text_with("B", 1)) out["pair"].push_back(std::move(item));
  return out;
}

}  // namespace

void add_settings(json& document, const Settings& settings, bool from_document) {
  const JsonPart part = settings.part();
  const bool asks = !from_document && !settings.own_frame &&
                    (part.has("add_bos_token") || part.has("add_eos_token"));
  if (asks || document.value("post_processor", json()).is_null())
    document["post_processor"] = bos_and_eos_frame(settings, !from_document);
  json& added = document["added_tokens"];
  if (added.is_null()) added = json::array();
  for (const TokenText& token : tokens_to_add(document, settings))
    added.push_back({{"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized.value_or(!token.special)},
                     {"special", token.special}});
  json& frame = document["post_processor"];
  if (!frame.is_object() || !frame.contains("special_tokens")) return;
  json& tokens = frame["special_tokens"];
  if (!tokens.is_object()) return;
  const DocumentIds ids(document);
  for (auto it = tokens.begin(); it != tokens.end(); ++it) {
    if (it->is_object() && !it->contains("ids")) (*it)["ids"] = json::array({ids.of(it.key())});
  }
}

}  // namespace tessera::tokenizer
