#include "tessera/tokenizers/class_documents.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/tokenizers/class_names.h"
#include "tessera/tokenizers/documents.h"
#include "tessera/tokenizers/files.h"

namespace tessera::tokenizer {

namespace {

using nlohmann::json;

/// What a class is made of: the vocabulary and what the files say beside it.
struct ClassParts {
  Settings& settings;
  json model;     // with vocabulary and merges, of tokenizer.json or other files
  json charsmap;  // a Precompiled normalizer, or null
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
};

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

json byte_level(const ClassParts& parts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", parts.keys().flag("add_prefix_space", false)}};
}

/// Words behind white space, each with the mark of a word's begin.
json marked_words(const ClassParts& parts) {
  const bool prefix = parts.keys().flag("add_prefix_space", true);
  return sequence("pretokenizers",
                  {{{"type", "WhitespaceSplit"}}, metaspace(prefix ? "always" : "never", true)});
}

/// "@bos_token $A ...": roles, the texts A and B with their type ids, and tokens as they are.
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

void build_bert(ClassParts& parts, json& out) {
  const JsonPart keys = parts.keys();
  out["normalizer"] = {{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", keys.flag("tokenize_chinese_chars", true)},
                       {"lowercase", keys.flag("do_lower_case", true)}};
  if (keys.has("strip_accents")) out["normalizer"]["strip_accents"] = keys.flag("strip_accents");
  out["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  out["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  out["model"] = {{"type", "WordPiece"},
                  {"unk_token", parts.need("unk_token")},
                  {"continuing_subword_prefix", "##"},
                  {"max_input_chars_per_word", 100}};
  out["post_processor"] =
      frame_of(parts, "cls_token:0 A:0 sep_token:0", "cls_token:0 A:0 sep_token:0 B:1 sep_token:1");
}

void build_gpt2(ClassParts& parts, json& out) {
  out["pre_tokenizer"] = byte_level(parts);
  out["decoder"] = {{"type", "ByteLevel"}};
  out["model"] = {{"type", "BPE"}};
}

void build_gpt_neox(ClassParts& parts, json& out) {
  build_gpt2(parts, out);
  out["normalizer"] = {{"type", "NFC"}};
  out["post_processor"] = nullptr;
}

void build_qwen2(ClassParts& parts, json& out) {
  build_gpt2(parts, out);
  out["normalizer"] = {{"type", "NFC"}};
  json bytes = std::move(out["pre_tokenizer"]);
  bytes["use_regex"] = false;
  constexpr const char* kPattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  out["pre_tokenizer"] = sequence(
      "pretokenizers",
      {{{"type", "Split"}, {"pattern", {{"Regex", kPattern}}}, {"behavior", "Isolated"}}, bytes});
}

void build_roberta(ClassParts& parts, json& out) {
  build_gpt2(parts, out);
  out["post_processor"] = frame_of(parts, "cls_token:0 A:0 sep_token:0",
                                   "cls_token:0 A:0 sep_token:0 sep_token:0 B:0 sep_token:0");
}

void build_llama(ClassParts& parts, json& out) {
  const bool prefix = parts.keys().flag("add_prefix_space", true),
             legacy = parts.keys().flag("legacy", false);
  out["pre_tokenizer"] = metaspace(!prefix ? "never" : legacy ? "always" : "first", false);
  json decoders = {replacing("\u2581", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  out["decoder"] = sequence("decoders", std::move(decoders));
  out["model"] = {{"type", "BPE"}, {"fuse_unk", true}, {"byte_fallback", true}};
}

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

void build_xlm_roberta(ClassParts& parts, json& out) {
  if (parts.from_model) {  // fairseq's order: four tokens of its own, the others moved by one
    json pieces = json::array();
    for (const char* const role : {"bos_token", "pad_token", "eos_token", "unk_token"})
      pieces.push_back({parts.need(role), 0.0});
    json& vocabulary = parts.model["vocab"];
    for (std::size_t i = 3; i < vocabulary.size(); ++i) pieces.push_back(std::move(vocabulary[i]));
    pieces.push_back({parts.need("mask_token"), 0.0});
    vocabulary = std::move(pieces);
  }
  out["normalizer"] = parts.charsmap;
  out["pre_tokenizer"] = marked_words(parts);
  out["decoder"] = out["pre_tokenizer"]["pretokenizers"][1];
  out["model"] = {{"type", "Unigram"}, {"unk_id", 3}};
  out["post_processor"] = frame_of(parts, "bos_token:0 A:0 eos_token:0",
                                   "bos_token:0 A:0 eos_token:0 eos_token:0 B:0 eos_token:0");
}

struct ClassRow {
  std::string_view name;
  std::string_view model;     // the type of its model
  std::string_view files;     // beside tokenizer.json
  std::string_view defaults;  // tokens of roles that the files do not name
  void (*build)(ClassParts& parts, json& out);
  bool own_frame = false;  // its post-processor is its own, whatever add_bos_token says
};

constexpr std::string_view kGpt2Tokens =
    "unk_token=<|endoftext|> bos_token=<|endoftext|> eos_token=<|endoftext|>";
constexpr std::string_view kRobertaTokens =
    "bos_token=<s> eos_token=</s> sep_token=</s> cls_token=<s> unk_token=<unk> pad_token=<pad> "
    "mask_token=<mask>";

constexpr ClassRow kClasses[] = {
    {"AlbertTokenizer", "Unigram", kSentencePiece,
     "bos_token=[CLS] eos_token=[SEP] unk_token=<unk> sep_token=[SEP] pad_token=<pad> "
     "cls_token=[CLS] mask_token=[MASK]",
     build_albert},
    {"BertTokenizer", "WordPiece", kVocabTxt,
     "unk_token=[UNK] sep_token=[SEP] pad_token=[PAD] cls_token=[CLS] mask_token=[MASK]",
     build_bert, true},
    {"GPT2Tokenizer", "BPE", "vocab.json merges.txt", kGpt2Tokens, build_gpt2},
    {"GPTNeoXTokenizer", "BPE", "vocab.json merges.txt",
     "unk_token=<|endoftext|> bos_token=<|endoftext|> eos_token=<|endoftext|> "
     "pad_token=<|padding|>",
     build_gpt_neox},
    {"LlamaTokenizer", "BPE", kSentencePiece, "unk_token=<unk> bos_token=<s> eos_token=</s>",
     build_llama},
    {"Qwen2Tokenizer", "BPE", "vocab.json merges.txt",
     "unk_token=<|endoftext|> eos_token=<|endoftext|> pad_token=<|endoftext|>", build_qwen2},
    {"RobertaTokenizer", "BPE", "vocab.json merges.txt", kRobertaTokens, build_roberta, true},
    {"T5Tokenizer", "Unigram", kSentencePiece, "eos_token=</s> unk_token=<unk> pad_token=<pad>",
     build_t5, true},
    {"XLMRobertaTokenizer", "Unigram", kSentencePiece, kRobertaTokens, build_xlm_roberta, true},
    {kFileClass, "", kSentencePiece, "", nullptr},
};

const ClassRow* find_class(std::string_view name) {
  const auto* const found = std::ranges::find(kClasses, name, &ClassRow::name);
  return found == std::end(kClasses) ? nullptr : found;
}

/// Files of old versions lack the type.
std::string type_of_model(const JsonPart& model) {
  if (model.has("type")) return model.text("type");
  if (model.has("merges")) return "BPE";
  if (model.has("max_input_chars_per_word")) return "WordPiece";
  return model.has("vocab") && model.part("vocab").json().is_array() ? "Unigram" : "WordLevel";
}

/// The first Precompiled normalizer of tokenizer.json, or null.
json charsmap_of(const json& document) {
  const auto normalizer = document.find("normalizer");
  if (normalizer == document.end() || !normalizer->is_object()) return nullptr;
  const auto steps = normalizer->find("normalizers");
  const json all =
      steps != normalizer->end() && steps->is_array() ? *steps : json::array({*normalizer});
  for (const json& step : all) {
    if (step.is_object() && step.value("type", json()) == json("Precompiled")) return step;
  }
  return nullptr;
}

void take_document(ClassParts& parts, const ClassRow& row, json& document, const std::string& file,
                   json& out) {
  const JsonPart root(document, file);
  const JsonPart model = root.part("model");
  if (const std::string type = type_of_model(model); type != row.model)
    root.bad("model.type is ", type, ", but tokenizer_class ", row.name, " makes a ", row.model,
             "; give the tokenizer_class of this file (without one, model_type of config.json ",
             "decides), or PreTrainedTokenizerFast to use it unchanged");
  parts.charsmap = charsmap_of(document);
  out["post_processor"] = document.value("post_processor", json());
  for (const char* const ignored : {"truncation", "padding", "version"}) {
    if (document.contains(ignored)) out[ignored] = document[ignored];
  }
  for (const char* const key : {"vocab", "merges"}) {
    if (model.has(key)) parts.model[key] = std::move(document["model"][key]);
  }
}

void take_files(ClassParts& parts, const TokenizerFiles& files, const std::string& where) {
  if (files.contains(kSentencePiece)) {
    ModelVocabulary of =
        model_vocabulary(files.at(kSentencePiece), shown_file(where, kSentencePiece));
    parts.from_model = true;
    parts.model["vocab"] = std::move(of.vocabulary);
    parts.settings.additional = std::move(of.symbols);
    if (!of.charsmap.empty())
      parts.charsmap = {{"type", "Precompiled"}, {"precompiled_charsmap", of.charsmap}};
  } else if (files.contains(kVocabTxt)) {
    parts.model["vocab"] =
        vocabulary_of_vocab_txt(files.at(kVocabTxt), shown_file(where, kVocabTxt));
  } else {
    parts.model["vocab"] = parse_json_file(files.at(kVocabJson), shown_file(where, kVocabJson));
    parts.model["merges"] = merges_of_lines(files.at(kMergesTxt), shown_file(where, kMergesTxt));
  }
}

/// An object of tokens and ids, where a list of pieces is.
json ids_of_pieces(const json& pieces) {
  json out = json::object();
  for (std::size_t i = 0; i < pieces.size(); ++i)
    out[pieces[i][0].get_ref<const std::string&>()] = i;
  return out;
}

}  // namespace

std::vector<std::string> files_of_class(std::string_view class_name) {
  const ClassRow* const row = find_class(class_name);
  return row == nullptr ? std::vector<std::string>() : split(row->files, ' ');
}

json document_of_class(const TokenizerFiles& files, json document, Settings& settings,
                       const std::string& where) {
  const ClassRow* const row = find_class(settings.class_name);
  if (row == nullptr) {
    std::vector<std::string> known;
    for (const ClassRow& each : kClasses) known.emplace_back(each.name);
    // Of a folder the class may be what model_type means, and no word of a tokenizer's file.
    fail(Fault::Data, "tokenizer '", where, "' is of class ",
         printable(settings.class_name.substr(0, 60)), " (tokenizer_class of ", kConfigJson,
         ", or model_type of config.json), which is not supported; supported are ", join(known),
         "; if ", kTokenizerJson,
         " is complete, write \"tokenizer_class\": ", "\"PreTrainedTokenizerFast\" into ",
         kConfigJson, " to use it unchanged");
  }
  const bool has_document = files.contains(kTokenizerJson);
  if (row->build == nullptr && has_document) return document;
  if (!has_document && !std::ranges::all_of(split(row->files, ' '), [&](const std::string& name) {
        return files.contains(name);
      })) {
    std::vector<std::string> there;
    for (const auto& [name, bytes] : files) there.push_back(name);
    settings.part().bad(
        "tokenizer_class ", row->name, " is made of tokenizer.json or ",
        join(split(row->files, ' '), " with "), ", and there is ", join(there),
        "; give these files, or the tokenizer_class of the existing ones (without one, "
        "model_type of config.json decides)");
  }
  if (row->build == nullptr)
    return document_of_model(files.at(kSentencePiece), settings, shown_file(where, kSentencePiece));
  for (const std::string& entry : split(row->defaults, ' ')) {
    const std::size_t equals = entry.find('=');
    settings.set_default(entry.substr(0, equals), entry.substr(equals + 1));
  }
  settings.own_frame = row->own_frame;
  ClassParts parts{settings, json::object(), nullptr};
  json out = {{"version", "1.0"}, {"post_processor", nullptr}};
  if (has_document) {
    take_document(parts, *row, document, shown_file(where, kTokenizerJson), out);
  } else {
    take_files(parts, files, where);
  }
  row->build(parts, out);
  if (row->model == "BPE" && parts.from_model) {
    parts.model["vocab"] = ids_of_pieces(parts.model["vocab"]);
    parts.model["merges"] = merges_of_pieces(parts.model["vocab"]);
  }
  for (const char* const key : {"vocab", "merges"}) {
    if (parts.model.contains(key)) out["model"][key] = std::move(parts.model[key]);
  }
  if (row->model == "BPE" && !out["model"].contains("merges"))
    out["model"]["merges"] = json::array();
  return out;
}

}  // namespace tessera::tokenizer
