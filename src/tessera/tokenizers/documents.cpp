#include "tessera/tokenizers/documents.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/characters.h"

namespace tessera::tokenizer {

namespace {

using nlohmann::json;

void require_utf8_file(const std::string& bytes, const std::string& file) {
  const std::size_t at = find_invalid_utf8(bytes);
  if (at != std::string::npos)
    fail(Fault::Data, "tokenizer file '", file, "', byte ", at,
         " is not UTF-8; restore the file: its tokens are no longer those of the model");
}

/// Without the white space at its end.
std::string_view trimmed_end(std::string_view line) {
  while (!line.empty()) {
    std::size_t at = line.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80) --at;
    if ((traits_of(code_point_at(line, at).value) & kBlank) == 0) break;
    line = line.substr(0, at);
  }
  return line;
}

json added_token(const std::string& content, const json& id) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

/// A word with a capital letter that is no special token: the vocabulary is of text as it is.
bool is_cased(const json& vocabulary) {
  for (auto it = vocabulary.begin(); it != vocabulary.end(); ++it) {
    const std::string& token = it.key();
    if (token.empty() || token.front() == '[' || token.front() == '<') continue;
    if (std::ranges::any_of(token, [](char c) { return c >= 'A' && c <= 'Z'; })) return true;
  }
  return false;
}

json flag_of(const json& config, const char* key, const json& missing) {
  const auto found = config.find(key);
  return found == config.end() || !(found->is_boolean() || found->is_null()) ? missing : *found;
}

}  // namespace

json vocabulary_of_vocab_txt(const std::string& bytes, const std::string& file) {
  require_utf8_file(bytes, file);
  json out = json::object();
  std::vector<std::string> lines = split(bytes, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.empty())
    fail(Fault::Data, "tokenizer file '", file, "' is empty; restore it: a token in each line");
  for (std::size_t i = 0; i < lines.size(); ++i) out[std::string(trimmed_end(lines[i]))] = i;
  return out;
}

json merges_of_lines(const std::string& bytes, const std::string& file) {
  require_utf8_file(bytes, file);
  json out = json::array();
  for (std::string& line : split(bytes, '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out.push_back(std::move(line));
  }
  if (!out.empty() && out.back().get_ref<const std::string&>().empty()) out.erase(out.size() - 1);
  return out;
}

json document_of_vocab_txt(const std::string& bytes, const json& config, const std::string& file) {
  json vocabulary = vocabulary_of_vocab_txt(bytes, file);
  json added = json::array();
  for (const char* const token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (vocabulary.contains(token)) added.push_back(added_token(token, vocabulary[token]));
  }
  json out = {{"version", "1.0"}, {"added_tokens", added}};
  out["normalizer"] = {{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", flag_of(config, "tokenize_chinese_chars", true)},
                       {"strip_accents", flag_of(config, "strip_accents", nullptr)},
                       {"lowercase", flag_of(config, "do_lower_case", !is_cased(vocabulary))}};
  out["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  if (vocabulary.contains("[CLS]") && vocabulary.contains("[SEP]"))
    out["post_processor"] = {{"type", "BertProcessing"},
                             {"cls", {"[CLS]", vocabulary["[CLS]"]}},
                             {"sep", {"[SEP]", vocabulary["[SEP]"]}}};
  out["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  out["model"] = {{"type", "WordPiece"},
                  {"unk_token", "[UNK]"},
                  {"continuing_subword_prefix", "##"},
                  {"max_input_chars_per_word", 100}};
  out["model"]["vocab"] = std::move(vocabulary);
  return out;
}

json document_of_vocab_json(json vocabulary, const std::string& merges, const json& config,
                            std::vector<std::string> special, const std::string& merges_file) {
  if (special.empty()) special.emplace_back("<|endoftext|>");
  json added = json::array();
  for (const std::string& token : special) {
    if (vocabulary.contains(token)) added.push_back(added_token(token, vocabulary[token]));
  }
  json out = {{"version", "1.0"}, {"added_tokens", added}};
  out["pre_tokenizer"] = {{"type", "ByteLevel"},
                          {"add_prefix_space", flag_of(config, "add_prefix_space", false)}};
  out["decoder"] = {{"type", "ByteLevel"}};
  out["model"] = {{"type", "BPE"}, {"merges", merges_of_lines(merges, merges_file)}};
  out["model"]["vocab"] = std::move(vocabulary);
  return out;
}

}  // namespace tessera::tokenizer
