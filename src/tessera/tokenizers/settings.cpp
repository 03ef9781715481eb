#include "tessera/tokenizers/settings.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/files/deep_json.h"
#include "tessera/tokenizers/class_names.h"
#include "tessera/tokenizers/files.h"

namespace tessera::tokenizer {

namespace {

using nlohmann::json;

/// In the order in which transformers adds them.
constexpr std::string_view kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
constexpr const char *kExtra = "extra_special_tokens", *kAdditional = "additional_special_tokens",
                     *kDecoder = "added_tokens_decoder";

/// Keys that would give other ids, or other files, and are not read.
struct RefusedKey {
  const char* key;
  bool if_true;  // refused where it is true alone; else wherever it is and is not null
  const char* because;
};
constexpr RefusedKey kRefused[] = {
    {"split_special_tokens", true, "special tokens in a text would be cut into pieces"},
    {"fix_mistral_regex", true, "the pattern of tokenizer.json would be replaced"},
    {"fast_tokenizer_files", false, "they would take the place of tokenizer.json"},
    {"init_inputs", false, "they are arguments of a class of Python"},
    {"tokenizer_object", false, "it is an object of Python"},
    {"post_processor", false, "tokenizer.json is where it belongs"},
    {"vocab", false, "it would take the place of the vocabulary's own file"},
    {"merges", false, "they would take the place of merges.txt"},
    {"gguf_file", false, "tokenizers in GGUF files are not read"},
};

bool is_role(std::string_view key) { return std::ranges::find(kRoles, key) != std::end(kRoles); }

/// A text, or an object with "content" and flags.
TokenText token_text_of(const JsonPart& part) {
  if (part.json().is_string()) return {.content = part.json().get<std::string>()};
  if (!part.is_object())
    part.bad("it is ", JsonPart::shown(part.json()),
             " where a token belongs, a text or an object with \"content\"; restore the file");
  TokenText out{.content = part.text("content"),
                .single_word = part.flag("single_word", false),
                .lstrip = part.flag("lstrip", false),
                .rstrip = part.flag("rstrip", false),
                .special = part.flag("special", false),
                .plain = false};
  if (part.has("normalized")) out.normalized = part.flag("normalized");
  return out;
}

/// The keys of a file in its own order, in which transformers adds tokens.
std::vector<std::string> keys_in_order(const TokenizerFiles& files, const char* name) {
  std::vector<std::string> out;
  const auto found = files.find(name);
  if (found == files.end()) return out;
  const auto object = parse_shallow<nlohmann::ordered_json>(found->second);
  if (!object.is_object()) return out;
  for (auto it = object.begin(); it != object.end(); ++it) out.push_back(it.key());
  return out;
}

/// Fills a Settings in transformers' order.
class SettingsReader {
 public:
  SettingsReader(const TokenizerFiles& files, const json& document, const std::string& where)
      : files_(files), document_(document), where_(where) {}

  Settings read() {
    for (const std::string_view role : kRoles) out_.roles.emplace_back(role, std::nullopt);
    out_.file = shown_file(where_, kConfigJson);
    out_.config = parsed(kConfigJson);
    const auto tokenizer = files_.find(kTokenizerJson);
    const bool byte_level =
        tokenizer != files_.end() && tokenizer->second.find("\"ByteLevel\"") != std::string::npos;
    out_.class_name = class_of_configs(out_.config, json::object(), byte_level);
    refuse_keys();
    take_roles(out_.part(), kConfigJson);
    take_extra(out_.part());
    if (out_.part().has(kDecoder)) {
      read_decoder(out_.part().part(kDecoder));
    } else {
      const json map = parsed(kSpecialMapJson);
      const JsonPart part(map, shown_file(where_, kSpecialMapJson));
      take_roles(part, kSpecialMapJson);
      take_extra_of_map(part);
      read_added_tokens();
      read_added_of_document();
    }
    // A role's flags are those of the added token with its text.
    for (auto& [name, token] : out_.roles) {
      if (!is_role(name) || !token) continue;
      if (const auto found = by_text_.find(token->content); found != by_text_.end())
        token = found->second;
    }
    return std::move(out_);
  }

 private:
  /// An object; empty where there is no such file.
  json parsed(const char* name) const {
    const auto found = files_.find(name);
    return found == files_.end() ? json::object()
                                 : parse_json_file(found->second, shown_file(where_, name));
  }

  void refuse_keys() const {
    const JsonPart part = out_.part();
    for (const RefusedKey& each : kRefused) {
      if (!part.has(each.key) || part.json()[each.key].empty()) continue;
      if (each.if_true && part.json()[each.key] != json(true)) continue;
      part.bad("\"", each.key, "\" is not read: ", each.because,
               "; leave the key out if it is not meant, or write all into a tokenizer.json");
    }
  }

  void set_role(std::string_view name, std::optional<TokenText> token) {
    const auto found =
        std::ranges::find_if(out_.roles, [&](const auto& role) { return role.first == name; });
    if (found == out_.roles.end()) {
      out_.roles.emplace_back(name, std::move(token));
    } else {
      found->second = std::move(token);
    }
    out_.given.emplace(name);
  }

  /// The keys "..._token" of tokenizer_config.json or special_tokens_map.json.
  void take_roles(const JsonPart& part, const char* file) {
    for (const std::string& key : keys_in_order(files_, file)) {
      const json& value = part.json()[key];
      if (!key.ends_with("_token")) continue;
      if (value.is_null()) {
        if (is_role(key)) set_role(key, std::nullopt);
        continue;
      }
      if (!is_role(key) && !value.is_string() && !value.is_object()) continue;  // add_bos_token
      TokenText token = token_text_of(part.part(key));
      if (file == kSpecialMapJson && !token.plain) token.special = true;
      set_role(key, std::move(token));
    }
  }

  static bool has_items(const JsonPart& part, const char* key) {
    return part.has(key) && !part.part(key).json().empty();
  }

  static std::vector<TokenText> tokens_at(const JsonPart& part, const char* key) {
    std::vector<TokenText> out;
    for (std::size_t i = 0; i < part.count(key); ++i)
      out.push_back(token_text_of(part.item(key, i)));
    return out;
  }

  /// {"image_token": "<image>"}: tokens with roles of their own.
  void take_named(const JsonPart& named) {
    for (auto it = named.json().begin(); it != named.json().end(); ++it)
      set_role(it.key(), token_text_of(named.part(it.key())));
  }

  void take_extra(const JsonPart& part) {
    const char* const key = has_items(part, kExtra) ? kExtra : kAdditional;
    if (!part.has(key)) return;
    if (key == kExtra && part.part(key).is_object()) return take_named(part.part(key));
    out_.extra = tokens_at(part, key);
  }

  void take_extra_of_map(const JsonPart& part) {
    if (part.has(kAdditional)) {
      out_.additional = tokens_at(part, kAdditional);
      for (TokenText& token : *out_.additional) token.special = true;
    }
    if (!part.has(kExtra)) return;
    if (part.part(kExtra).is_object()) return take_named(part.part(kExtra));
    if (!out_.extra) out_.extra.emplace();
    for (TokenText& token : tokens_at(part, kExtra)) {
      if (!token.plain) token.special = true;
      if (std::ranges::find(*out_.extra, token) == out_.extra->end()) out_.extra->push_back(token);
    }
  }

  void add(std::int32_t id, TokenText token) {
    by_text_[token.content] = token;
    out_.added[id] = std::move(token);
  }

  void read_decoder(const JsonPart& part) {
    if (!part.is_object())
      part.bad("it is ", JsonPart::shown(part.json()),
               " where an object of ids and tokens belongs; restore the file");
    for (auto it = part.json().begin(); it != part.json().end(); ++it) {
      const std::string& key = it.key();
      std::int32_t id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0 || !it->is_object())
        part.bad("\"", key.substr(0, 60), "\": ", JsonPart::shown(*it),
                 " is not an id and its token, an object; restore the file");
      add(id, token_text_of(part.part(key)));
    }
  }

  void read_added_tokens() {
    const json file = parsed(kAddedTokensJson);
    const JsonPart part(file, shown_file(where_, kAddedTokensJson));
    const auto is_special = [&](const std::string& content) {
      const auto is = [&](const TokenText& token) { return token.content == content; };
      return (out_.extra && std::ranges::any_of(*out_.extra, is)) ||
             std::ranges::any_of(out_.roles, [&](const auto& role) {
               return is_role(role.first) && role.second && is(*role.second);
             });
    };
    for (const std::string& content : keys_in_order(files_, kAddedTokensJson)) {
      const bool special = is_special(content);
      add(id_of_json(file[content], part, text("the id of '", content.substr(0, 60), "'")),
          {.content = content, .special = special, .normalized = !special, .plain = false});
    }
  }

  /// Those of tokenizer.json, which go before the others.
  void read_added_of_document() {
    const JsonPart part(document_, shown_file(where_, kTokenizerJson));
    for (std::size_t i = 0; part.has("added_tokens") && i < part.count("added_tokens"); ++i) {
      const JsonPart token = part.item("added_tokens", i);
      add(token.number("id"), token_text_of(token));
    }
  }

  const TokenizerFiles& files_;
  const json& document_;
  const std::string& where_;
  Settings out_;
  std::map<std::string, TokenText> by_text_;
};

}  // namespace

Settings read_settings(const TokenizerFiles& files, const json& document,
                       const std::string& where) {
  return SettingsReader(files, document, where).read();
}

const TokenText* Settings::role(std::string_view name) const {
  for (const auto& [key, token] : roles) {
    if (key == name) return token ? &*token : nullptr;
  }
  return nullptr;
}

void Settings::set_default(std::string_view role, std::string_view token) {
  if (given.contains(role)) return;
  for (auto& [key, of_role] : roles) {
    if (key == role) of_role = {.content = std::string(token)};
  }
}

std::string shown_file(const std::string& where, std::string_view name) {
  namespace fs = std::filesystem;
  const fs::path path(where);
  const std::string end = path.extension().string();
  if (end != ".json" && end != ".txt" && end != ".model") return text(where, "/", name);
  const bool beside = name == kConfigJson || name == kSpecialMapJson || name == kAddedTokensJson;
  return beside ? (path.parent_path() / name).string() : where;
}

}  // namespace tessera::tokenizer
