#include "tessera/data/tokenizer/files.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/data/file.h"
#include "tessera/data/tokenizer/documents.h"

namespace tessera::tokenizer {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelNames[] = {"tokenizer.model", "spiece.model",
                                            "sentencepiece.bpe.model"};
constexpr std::string_view kRoles[] = {"pad", "unk", "cls", "sep", "mask", "bos", "eos"};

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

/// What there is beside the main files.
void read_companions(const std::string& folder, TokenizerFiles& out) {
  for (const char* const name : {kConfigJson, kSpecialMapJson}) {
    const std::string path = (fs::path(folder) / name).string();
    if (is_file(path)) out[name] = read_file(path);
  }
}

/// The main files of a folder and where they lie; empty: it has no tokenizer.
std::map<std::string, std::string> main_files(const std::string& folder) {
  const auto path_of = [&](const char* name) { return (fs::path(folder) / name).string(); };
  using Names = std::vector<const char*>;
  for (const Names& names : {Names{kTokenizerJson}, {kVocabTxt}, {kVocabJson, kMergesTxt}}) {
    std::map<std::string, std::string> out;
    for (const char* name : names) {
      if (is_file(path_of(name))) out[name] = path_of(name);
    }
    if (out.size() == names.size()) return out;
  }
  const std::string model = sentence_piece_of(folder);
  if (model.empty()) return {};
  return {{kSentencePiece, model}};
}

TokenizerFiles files_of_folder(const std::string& folder) {
  TokenizerFiles out;
  for (const auto& [name, path] : main_files(folder)) out[name] = read_file(path);
  if (out.empty())
    fail(Fault::Data, "folder '", folder, "' holds no tokenizer: none of ", kTokenizerJson, ", ",
         kVocabTxt, ", ", kVocabJson, " with ", kMergesTxt, ", ", join(kModelNames),
         "; give the folder or the file of one");
  read_companions(folder, out);
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

/// The token of "cls_token": "[CLS]", or of an object with its content.
std::string token_text(const nlohmann::json& file, const std::string& key) {
  const auto found = file.find(key);
  if (found == file.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return "";
  const auto content = found->find("content");
  return content != found->end() && content->is_string() ? content->get<std::string>() : "";
}

}  // namespace

bool has_tokenizer_files(const std::string& folder) { return !main_files(folder).empty(); }

TokenizerFiles read_tokenizer_files(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return files_of_folder(path);
  if (!fs::exists(path, ignored))
    fail(Fault::Data, "there is no tokenizer '", path, "'", near_files(path),
         "; give a folder or a file that is on this machine: nothing is fetched by name");
  return files_of_file(path);
}

nlohmann::json parse_json_file(const std::string& bytes, const std::string& file) {
  std::string problem;
  try {
    nlohmann::json out = nlohmann::json::parse(bytes);
    if (out.is_object()) return out;
    problem = "it is no object";
  } catch (const nlohmann::json::exception& error) {
    problem = replaced_utf8(std::string_view(error.what()).substr(0, 200));
  }
  fail(Fault::Data, "tokenizer file '", file, "' is no JSON object: ", problem,
       "; restore the file");
}

nlohmann::json document_of(const TokenizerFiles& files, const std::string& where) {
  const auto path_of = [&](const char* name) { return text(where, "/", name); };
  const auto config = [&] {
    const auto found = files.find(kConfigJson);
    return found == files.end() ? nlohmann::json::object()
                                : parse_json_file(found->second, path_of(kConfigJson));
  };
  if (const auto found = files.find(kTokenizerJson); found != files.end())
    return parse_json_file(found->second, path_of(kTokenizerJson));
  if (const auto found = files.find(kVocabTxt); found != files.end())
    return document_of_vocab_txt(found->second, config(), path_of(kVocabTxt));
  if (const auto found = files.find(kVocabJson); found != files.end()) {
    if (!files.contains(kMergesTxt))
      fail(Fault::Data, "tokenizer '", where, "' has ", kVocabJson, " and no ", kMergesTxt,
           "; restore that file");
    return document_of_vocab_json(parse_json_file(found->second, path_of(kVocabJson)),
                                  files.at(kMergesTxt), config(),
                                  named_special_tokens(files, where), path_of(kMergesTxt));
  }
  fail(Fault::Data, "tokenizer '", where, "' has no file that makes one; restore them");
}

std::vector<std::pair<std::string, std::string>> named_special_tokens(const TokenizerFiles& files,
                                                                      const std::string& where) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const char* const name : {kSpecialMapJson, kConfigJson}) {
    const auto found = files.find(name);
    if (found == files.end()) continue;
    const nlohmann::json json = parse_json_file(found->second, text(where, "/", name));
    for (const std::string_view role : kRoles) {
      const bool known = std::ranges::any_of(out, [&](const auto& p) { return p.first == role; });
      const std::string token = token_text(json, text(role, "_token"));
      if (!known && !token.empty()) out.emplace_back(role, token);
    }
  }
  return out;
}

}  // namespace tessera::tokenizer
