#include "tessera/tokenizers/class_parts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/text.h"

namespace tessera::tokenizer {

using nlohmann::json;

json metaspace(const char* scheme, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", "\u2581"},
          {"prepend_scheme", scheme},
          {"split", split}};
}

json sequence(const char* key, json parts) {
  return {{"type", "Sequence"}, {key, std::move(parts)}};
}

json replacing(const char* what, const char* by) {
  return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}};
}

json replacing_regex(const char* regex, const char* by) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", regex}}}, {"content", by}};
}

json frame_of(const ClassParts& parts, std::string_view single, std::string_view pair) {
  json out = {{"type", "TemplateProcessing"}, {"special_tokens", json::object()}};
  const auto list = [&](std::string_view form) {
    json items = json::array();
    for (const std::string& word : split(form, ' ')) {
      const std::size_t colon = word.rfind(':');
      const int type = word.substr(colon + 1) == "1" ? 1 : 0;
      const std::string name = word.substr(0, colon);
      if (name == "A" || name == "B") {
        items.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
        continue;
      }
      const std::string token = parts.need(name.c_str());
      items.push_back({{"SpecialToken", {{"id", token}, {"type_id", type}}}});
      out["special_tokens"][token] = {{"id", token}};  // its ids: add_settings
    }
    return items;
  };
  out["single"] = list(single);
  out["pair"] = list(pair);
  return out;
}

void ClassParts::take_blanks_before(std::string_view name) {
  for (auto& [role, token] : settings.roles) {
    if (role != name || !token || !token->plain) continue;
    token->lstrip = true;
    token->plain = false;
  }
}

namespace {

/// The number of a piece, of those from `first` on; none: it is missing. `unscored`: its score
/// must be 0.
std::optional<std::int64_t> number_of_piece(const json& pieces, const std::string& token,
                                            std::int64_t first, bool unscored) {
  for (std::int64_t i = first; i < std::ssize(pieces); ++i) {
    const json& piece = pieces[static_cast<std::size_t>(i)];
    if (piece.is_array() && piece.size() == 2 && piece[0] == json(token) &&
        (!unscored || piece[1] == json(0.0)))
      return i;
  }
  return {};
}

/// Pieces of a class itself, then those of a file of SentencePiece from `first` on.
json before_pieces(std::vector<json> pieces, json& of_file, std::size_t first) {
  json out = json::array();
  for (json& piece : pieces) out.push_back(std::move(piece));
  for (std::size_t i = first; i < of_file.size(); ++i) out.push_back(std::move(of_file[i]));
  return out;
}

json unscored(std::string token) { return {std::move(token), 0.0}; }

/// Words behind white space, each with the mark of a word's begin.
json marked_words(const ClassParts& parts) {
  const bool prefix = parts.keys().flag("add_prefix_space", true);
  return sequence("pretokenizers",
                  {{{"type", "WhitespaceSplit"}}, metaspace(prefix ? "always" : "never", true)});
}

}  // namespace

void build_t5(ClassParts& parts, json& out) {
  Settings& settings = parts.settings;
  const std::int32_t count = settings.part().number("extra_ids", 100);
  if (count > 100'000)
    settings.part().bad("\"extra_ids\" is ", count, "; more than 100000 are not read");
  const auto name = [](std::int32_t i) { return text("<extra_id_", i, ">"); };
  if (parts.from_model) {
    for (std::int32_t i = count; i-- > 0;) parts.model["vocab"].push_back({name(i), 0.0});
  }
  if (!settings.additional) settings.additional.emplace();
  std::vector<TokenText>& tokens = *settings.additional;
  const auto named = std::ranges::count_if(tokens, [](const TokenText& token) {
    return token.content.find("<extra_id_") != std::string::npos;
  });
  if (named > 0 && count > 0 && named != count)
    settings.part().bad("\"extra_ids\" is ", count, " but ", named,
                        " tokens <extra_id_0> and so on are named; make both agree");
  for (std::int32_t i = 0; named == 0 && i < count; ++i) tokens.push_back({.content = name(i)});
  out["normalizer"] = parts.charsmap;
  out["pre_tokenizer"] =
      sequence("pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace("always", true)});
  out["decoder"] = metaspace("always", true);
  out["model"] = {{"type", "Unigram"}, {"unk_id", 2}};
  out["post_processor"] = frame_of(parts, "A:0 eos_token:0", "A:0 eos_token:0 B:0 eos_token:0");
}

void build_albert(ClassParts& parts, json& out) {
  const JsonPart keys = parts.keys();
  json steps = {replacing("``", "\""), replacing("''", "\"")};
  if (!keys.flag("keep_accents", false)) {
    steps.push_back({{"type", "NFKD"}});
    steps.push_back({{"type", "StripAccents"}});
  }
  if (keys.flag("do_lower_case", true)) steps.push_back({{"type", "Lowercase"}});
  if (!parts.charsmap.is_null()) steps.push_back(parts.charsmap);
  out["normalizer"] = sequence("normalizers", std::move(steps));
  out["pre_tokenizer"] = marked_words(parts);
  out["decoder"] = out["pre_tokenizer"]["pretokenizers"][1];
  out["model"] = {{"type", "Unigram"}, {"unk_id", 1}};
  if (out["post_processor"].is_null())
    out["post_processor"] = frame_of(parts, "cls_token:0 A:0 sep_token:0",
                                     "cls_token:0 A:0 sep_token:0 B:1 sep_token:1");
}

namespace {

/// XLM-RoBERTa's and CamemBERT's.
void build_marked(ClassParts& parts, json& out, std::int64_t unknown) {
  out["normalizer"] = parts.charsmap;
  out["pre_tokenizer"] = marked_words(parts);
  out["decoder"] = out["pre_tokenizer"]["pretokenizers"][1];
  out["model"] = {{"type", "Unigram"}, {"unk_id", unknown}};
  out["post_processor"] = frame_of(parts, "bos_token:0 A:0 eos_token:0",
                                   "bos_token:0 A:0 eos_token:0 eos_token:0 B:0 eos_token:0");
}

}  // namespace

void build_xlm_roberta(ClassParts& parts, json& out) {
  if (parts.from_model) {  // fairseq's order: four tokens of its own, the others moved by one
    json& vocabulary = parts.model["vocab"];
    vocabulary =
        before_pieces({unscored(parts.need("bos_token")), unscored(parts.need("pad_token")),
                       unscored(parts.need("eos_token")), unscored(parts.need("unk_token"))},
                      vocabulary, 3);
    vocabulary.push_back(unscored(parts.need("mask_token")));
  }
  build_marked(parts, out, 3);
}

void build_camembert(ClassParts& parts, json& out) {
  json& vocabulary = parts.model["vocab"];
  if (parts.from_model) {
    vocabulary = before_pieces({unscored("<s>NOTUSED"),
                                unscored(parts.need("pad_token")),
                                unscored("</s>NOTUSED"),
                                unscored(parts.need("unk_token")),
                                {"<unk>NOTUSED", -100.0}},
                               vocabulary, 1);
    vocabulary.push_back(unscored(parts.need("mask_token")));
  }
  if (!parts.settings.additional)
    parts.settings.additional.emplace({TokenText{.content = "<s>NOTUSED"},
                                       TokenText{.content = "</s>NOTUSED"},
                                       TokenText{.content = "<unk>NOTUSED"}});
  parts.take_blanks_before("mask_token");
  build_marked(parts, out,
               number_of_piece(vocabulary, parts.need("unk_token"), 0, false).value_or(0));
}

void build_deberta_v2(ClassParts& parts, json& out) {
  const JsonPart keys = parts.keys();
  json normalizers = json::array(), cuts = json::array();
  if (keys.flag("do_lower_case", false)) normalizers.push_back({{"type", "Lowercase"}});
  normalizers.push_back(replacing_regex(R"(\s{2,}|[\n\r\t])", " "));
  normalizers.push_back({{"type", "NFC"}});
  normalizers.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  out["normalizer"] = sequence("normalizers", std::move(normalizers));
  if (keys.flag("split_by_punct", false))
    cuts.push_back({{"type", "Punctuation"}, {"behavior", "Isolated"}});
  cuts.push_back(metaspace(keys.flag("add_prefix_space", true) ? "always" : "first", true));
  out["decoder"] = cuts.back();
  out["pre_tokenizer"] = sequence("pretokenizers", std::move(cuts));
  const std::string unknown = parts.need("unk_token");
  const auto known = number_of_piece(parts.model["vocab"], unknown, 0, true);
  if (!known && parts.from_model)
    keys.bad("\"unk_token\" is ", unknown,
             ", which is no piece of the SentencePiece model; give "
             "its unknown token");
  out["model"] = {{"type", "Unigram"}, {"unk_id", known.value_or(keys.number("unk_id", 1))}};
  out["post_processor"] =
      frame_of(parts, "cls_token:0 A:0 sep_token:0", "cls_token:0 A:0 sep_token:0 B:1 sep_token:1");
}

void build_pegasus(ClassParts& parts, json& out) {
  const JsonPart keys = parts.keys();
  const std::int32_t offset = keys.number("offset", 103);
  if (offset < 2 || offset > 100'000)
    keys.bad("\"offset\" is ", offset, "; it must be from 2 to 100000");
  const auto unused = [](std::int32_t i) { return text("<unk_", i, ">"); };
  constexpr const char* kSentences = "mask_token_sent";
  const bool given = keys.json().contains(kSentences), null = given && !keys.has(kSentences);
  const std::string sentences = null ? "" : given ? keys.text(kSentences) : "<mask_1>";
  json& vocabulary = parts.model["vocab"];
  if (parts.from_model) {
    // Without words of a file the two masks are taken the other way round.
    const TokenText* const mask = parts.settings.role("mask_token");
    const bool mask_given = parts.settings.given.contains("mask_token");
    const std::string first = !mask_given       ? "<mask_1>"
                              : mask == nullptr ? ""
                                                : mask->content,
                      second = given ? sentences : "<mask_2>";
    std::vector<json> pieces = {unscored(parts.need("pad_token")),
                                unscored(parts.need("eos_token"))};
    if (!first.empty()) pieces.push_back(unscored(first));
    if (!second.empty() && second != first) pieces.push_back(unscored(second));
    for (std::int32_t i = 2; i < offset; ++i) pieces.push_back({unused(i), -100.0});
    vocabulary = before_pieces(std::move(pieces), vocabulary, 2);
  }
  std::vector<TokenText> additional;
  const bool named = parts.settings.additional &&
                     std::ranges::find(*parts.settings.additional, sentences,
                                       &TokenText::content) != parts.settings.additional->end();
  if (!sentences.empty() && !named) additional.push_back({.content = sentences});
  for (std::int32_t i = 2; i < offset; ++i) additional.push_back({.content = unused(i)});
  parts.settings.additional = std::move(additional);
  out["normalizer"] = sequence(
      "normalizers", {parts.charsmap.is_null() ? replacing_regex(R"(\n)", " ") : parts.charsmap,
                      replacing_regex(" {2,}", " ")});
  out["pre_tokenizer"] = metaspace("always", true);
  out["decoder"] = out["pre_tokenizer"];
  const std::string unknown = parts.need("unk_token");
  const auto known = number_of_piece(vocabulary, unknown, 1, true);
  if (!known)
    keys.bad("\"unk_token\" is ", unknown,
             ", which is no piece behind the first of the vocabulary; "
             "give its unknown token");
  out["model"] = {{"type", "Unigram"}, {"unk_id", *known}};
  out["post_processor"] = frame_of(parts, "A:0 eos_token:0", "A:0 B:0 eos_token:0");
}

}  // namespace tessera::tokenizer
