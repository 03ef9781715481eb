#include "tessera/tokenizers/files.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/deep_json.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/class_documents.h"
#include "tessera/tokenizers/class_names.h"
#include "tessera/tokenizers/documents.h"

namespace tessera::tokenizer {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelNames[] = {"tokenizer.model", "spiece.model",
                                            "sentencepiece.bpe.model", "spm.model"};

std::string beside(const std::string& path, const char* name) {
  return (fs::path(path).parent_path() / name).string();
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The model of a folder without tokenizer.json and the like; empty: none.
std::string sentence_piece_of(const std::string& folder) {
  for (const std::string_view name : kModelNames) {
    const std::string path = (fs::path(folder) / name).string();
    if (is_file(path)) return path;
  }
  return "";
}

/// parse_json_file() with the keys in the file's order.
nlohmann::ordered_json ordered_object(const std::string& bytes, const std::string& file) {
  parse_json_file(bytes, file);
  return nlohmann::ordered_json::parse(bytes);
}

/// What there is beside the main files. Where config.json says another class than these files, it
/// is put down in tokenizer_config.json, because config.json is the model's and not recorded.
void read_companions(const std::string& folder, TokenizerFiles& out) {
  const auto path_of = [&](const char* name) { return (fs::path(folder) / name).string(); };
  for (const char* const name : {kConfigJson, kSpecialMapJson, kAddedTokensJson, kChatTemplate}) {
    if (is_file(path_of(name))) out[name] = read_file(path_of(name));
  }
  if (!is_file(path_of("config.json"))) return;
  auto config =
      ordered_object(out.contains(kConfigJson) ? out[kConfigJson] : "{}", path_of(kConfigJson));
  const bool byte_level = out.contains(kTokenizerJson) &&
                          out[kTokenizerJson].find("\"ByteLevel\"") != std::string::npos;
  const auto class_with = [&](const nlohmann::json& model) {
    return class_of_configs(nlohmann::json(config), model, byte_level);
  };
  const std::string name =
      class_with(parse_json_file(read_file(path_of("config.json")), path_of("config.json")));
  if (name == class_with(nlohmann::json::object())) return;
  config["tokenizer_class"] = name;
  out[kConfigJson] = config.dump(2) + "\n";
}

/// The main files of a folder and where they lie; empty: it has no tokenizer. `of_class`: those
/// that the class takes, which go before others; empty: no class is known.
std::map<std::string, std::string> main_files(const std::string& folder,
                                              const std::vector<std::string>& of_class = {}) {
  const auto path_of = [&](const std::string& name) {
    return name == kSentencePiece ? sentence_piece_of(folder) : (fs::path(folder) / name).string();
  };
  using Names = std::vector<std::string>;
  for (const Names& names : {Names{kTokenizerJson}, of_class, Names{kVocabTxt},
                             Names{kVocabJson, kMergesTxt}, Names{kSentencePiece}}) {
    std::map<std::string, std::string> out;
    for (const std::string& name : names) {
      if (is_file(path_of(name))) out[name] = path_of(name);
    }
    if (!out.empty() && out.size() == names.size()) return out;
  }
  return {};
}

/// A tokenizer.model of which nothing says a class is that of any file: so transformers has it.
void name_class(TokenizerFiles& files, const std::string& folder) {
  auto config = ordered_object(files.contains(kConfigJson) ? files[kConfigJson] : "{}",
                               shown_file(folder, kConfigJson));
  if (config.contains("tokenizer_class")) return;
  config["tokenizer_class"] = kFileClass;
  files[kConfigJson] = config.dump(2) + "\n";
}

TokenizerFiles files_of_folder(const std::string& folder) {
  TokenizerFiles out;
  const auto read_main = [&](const std::vector<std::string>& of_class) {
    out.clear();
    for (const auto& [name, path] : main_files(folder, of_class)) out[name] = read_file(path);
    read_companions(folder, out);
  };
  if (!has_tokenizer_files(folder))
    fail(Fault::Data, "folder '", folder, "' holds no tokenizer: none of ", kTokenizerJson, ", ",
         kVocabTxt, ", ", kVocabJson, " with ", kMergesTxt, ", ", join(kModelNames),
         "; give the folder or the file of one");
  read_main({});
  if (is_file((fs::path(folder) / kSentencePiece).string()) && out.contains(kSentencePiece))
    name_class(out, folder);
  const auto config = out.find(kConfigJson);
  if (out.contains(kTokenizerJson) || config == out.end()) return out;
  const std::vector<std::string> names = files_of_class(
      class_of_configs(parse_json_file(config->second, shown_file(folder, kConfigJson)),
                       nlohmann::json::object(), false));
  if (!std::ranges::all_of(names, [&](const std::string& name) { return out.contains(name); }))
    read_main(names);
  return out;
}

/// What a file is, by its end and its first byte.
TokenizerFiles files_of_file(const std::string& path) {
  TokenizerFiles out;
  const std::string name = fs::path(path).filename().string();
  if (name.ends_with(kMergesTxt)) {
    out[kMergesTxt] = read_file(path);
    out[kVocabJson] = read_file(beside(path, kVocabJson));
  } else if (name == kVocabJson) {
    out[kVocabJson] = read_file(path);
    out[kMergesTxt] = read_file(beside(path, kMergesTxt));
  } else if (name.ends_with(".txt")) {
    out[kVocabTxt] = read_file(path);
  } else if (name.ends_with(".model")) {
    out[kSentencePiece] = read_file(path);
  } else {
    out[kTokenizerJson] = read_file(path);
  }
  read_companions(fs::path(path).parent_path().string(), out);
  return out;
}

}  // namespace

bool is_tokenizer_file(std::string_view name) {
  return std::ranges::find(kTokenizerFileNames, name) != std::end(kTokenizerFileNames) ||
         std::ranges::find(kModelNames, name) != std::end(kModelNames);
}

bool has_tokenizer_files(const std::string& folder) { return !main_files(folder).empty(); }

TokenizerFiles read_tokenizer_files(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return files_of_folder(path);
  if (!fs::exists(path, ignored))
    fail(Fault::Data, "there is no tokenizer '", path, "'", near_files(path),
         "; give a folder or file on this machine: nothing is downloaded");
  return files_of_file(path);
}

nlohmann::json parse_json_file(const std::string& bytes, const std::string& file) {
  if (is_deep_json(bytes))
    fail(Fault::Data, "tokenizer file '", file, "' has lists or objects nested deeper than ",
         kMostJsonDepth, "; restore the file");
  std::string problem;
  try {
    nlohmann::json out = nlohmann::json::parse(bytes);
    if (out.is_object()) return out;
    problem = "it is not an object";
  } catch (const nlohmann::json::exception& error) {
    problem = replaced_utf8(std::string_view(error.what()).substr(0, 200));
  }
  fail(Fault::Data, "tokenizer file '", file, "' is not a JSON object: ", problem,
       "; restore the file");
}

TokenizerDocument document_of(const TokenizerFiles& files, const std::string& where) {
  const auto has = [&](const char* name) { return files.contains(name); };
  const auto file = [&](const char* name) { return shown_file(where, name); };
  TokenizerDocument out;
  nlohmann::json document = has(kTokenizerJson)
                                ? parse_json_file(files.at(kTokenizerJson), file(kTokenizerJson))
                                : nlohmann::json::object();
  out.settings = read_settings(files, document, where);
  Settings& settings = out.settings;
  if (!settings.class_name.empty()) {
    out.json = document_of_class(files, std::move(document), settings, where);
  } else if (has(kTokenizerJson)) {
    out.json = std::move(document);
  } else if (has(kVocabTxt)) {
    out.json = document_of_vocab_txt(files.at(kVocabTxt), settings.config, file(kVocabTxt));
  } else if (has(kVocabJson)) {
    if (!has(kMergesTxt))
      fail(Fault::Data, "tokenizer '", where, "' has ", kVocabJson, " and no ", kMergesTxt,
           "; restore that file");
    std::vector<std::string> special;
    for (const auto& [role, token] : settings.roles) {
      if (token) special.push_back(token->content);
    }
    out.json = document_of_vocab_json(parse_json_file(files.at(kVocabJson), file(kVocabJson)),
                                      files.at(kMergesTxt), settings.config, std::move(special),
                                      file(kMergesTxt));
  } else if (has(kSentencePiece)) {
    out.of_sentence_piece = true;
    out.json = {
        {"model",
         {{"vocab", model_vocabulary(files.at(kSentencePiece), file(kSentencePiece)).vocabulary}}}};
  } else {
    fail(Fault::Data, "tokenizer '", where, "' has no tokenizer file; restore them");
  }
  add_settings(out.json, settings, has(kTokenizerJson));
  return out;
}

std::string main_file(const TokenizerFiles& files, const std::string& where) {
  for (const char* const name : {kTokenizerJson, kVocabTxt, kVocabJson, kSentencePiece}) {
    if (files.contains(name)) return shown_file(where, name);
  }
  return where;
}

}  // namespace tessera::tokenizer
