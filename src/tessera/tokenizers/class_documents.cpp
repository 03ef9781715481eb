#include "tessera/tokenizers/class_documents.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/tokenizers/class_names.h"
#include "tessera/tokenizers/class_parts.h"
#include "tessera/tokenizers/documents.h"
#include "tessera/tokenizers/files.h"

namespace tessera::tokenizer {

namespace {

using nlohmann::json;

json byte_level(const ClassParts& parts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", parts.keys().flag("add_prefix_space", false)}};
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

void build_mpnet(ClassParts& parts, json& out) {
  build_bert(parts, out);
  parts.take_blanks_before("mask_token");
  out["post_processor"] = frame_of(parts, "cls_token:0 A:0 sep_token:0",
                                   "cls_token:0 A:0 sep_token:0 sep_token:0 B:0 sep_token:0");
}

void build_gemma(ClassParts& parts, json& out) {
  out["normalizer"] = replacing(" ", "\u2581");
  out["pre_tokenizer"] = {{"type", "Split"},
                          {"pattern", {{"String", " "}}},
                          {"behavior", "MergedWithPrevious"},
                          {"invert", false}};
  out["decoder"] = sequence(
      "decoders", {replacing("\u2581", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  out["model"] = {{"type", "BPE"},
                  {"unk_token", parts.need("unk_token")},
                  {"fuse_unk", true},
                  {"byte_fallback", true}};
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
    {"CamembertTokenizer", "Unigram", kSentencePiece, kRobertaTokens, build_camembert, true},
    {"DebertaV2Tokenizer", "Unigram", kSentencePiece,
     "bos_token=[CLS] eos_token=[SEP] unk_token=[UNK] sep_token=[SEP] pad_token=[PAD] "
     "cls_token=[CLS] mask_token=[MASK]",
     build_deberta_v2, true},
    {"GemmaTokenizer", "BPE", kTokenizerJson,
     "unk_token=<unk> bos_token=<bos> eos_token=<eos> pad_token=<pad> mask_token=<mask>",
     build_gemma},
    {"GPT2Tokenizer", "BPE", "vocab.json merges.txt", kGpt2Tokens, build_gpt2},
    {"GPTNeoXTokenizer", "BPE", "vocab.json merges.txt",
     "unk_token=<|endoftext|> bos_token=<|endoftext|> eos_token=<|endoftext|> "
     "pad_token=<|padding|>",
     build_gpt_neox},
    {"LlamaTokenizer", "BPE", kSentencePiece, "unk_token=<unk> bos_token=<s> eos_token=</s>",
     build_llama},
    {"MPNetTokenizer", "WordPiece", kVocabTxt,
     "bos_token=<s> eos_token=</s> sep_token=</s> cls_token=<s> unk_token=[UNK] pad_token=<pad> "
     "mask_token=<mask>",
     build_mpnet, true},
    {"PegasusTokenizer", "Unigram", kSentencePiece,
     "pad_token=<pad> eos_token=</s> unk_token=<unk> mask_token=<mask_2>", build_pegasus, true},
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
