#include "tessera/pretrained/exported_tokenizer.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

namespace {

/// Whether tokens with capitals are its own: then a text is not made small letters.
bool has_capitals(const Tokenizer& tokenizer) {
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    const std::string capital(1, letter);
    const std::optional<std::int32_t> id = tokenizer.id_of(capital);
    if (id && tokenizer.encode(capital, {.add_special_tokens = false}) == std::vector{*id})
      return true;
  }
  return false;
}

}  // namespace

TokenizerFiles exported_files(const Tokenizer& tokenizer) {
  TokenizerFiles out = tokenizer.files();
  const bool words = out.contains("vocab.txt"), merges = out.contains("merges.txt");
  if (out.contains("tokenizer.json") || (!words && !merges)) return out;
  std::string& file = out["tokenizer_config.json"];
  using Json = nlohmann::ordered_json;
  Json config = file.empty() ? Json::object() : Json::parse(file, nullptr, false);
  if (!config.is_object()) return tokenizer.files();  // whoever read it had no use for it
  if (!config.contains("tokenizer_class"))
    config["tokenizer_class"] = words ? "BertTokenizer" : "GPT2Tokenizer";
  if (words && !config.contains("do_lower_case"))
    config["do_lower_case"] = !has_capitals(tokenizer);
  file = config.dump(2) + "\n";
  return out;
}

std::optional<std::int32_t> exported_padding(const Tokenizer& tokenizer, TokenizerFiles& files) {
  const SpecialTokens& has = tokenizer.special_tokens();
  if (has.pad || !has.eos) return has.pad;
  using Json = nlohmann::ordered_json;
  std::string& file = files["tokenizer_config.json"];
  Json config = file.empty() ? Json::object() : Json::parse(file, nullptr, false);
  if (!config.is_object()) return std::nullopt;
  config["pad_token"] = *tokenizer.token(*has.eos);
  file = config.dump(2) + "\n";
  return has.eos;
}

}  // namespace tessera
