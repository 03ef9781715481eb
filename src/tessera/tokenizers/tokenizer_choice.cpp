#include "tessera/tokenizers/tokenizer_choice.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/files.h"

namespace tessera {

namespace {

/// A file that makes a tokenizer, and which flag names it.
struct TypeFile {
  std::string TokenizerChoice::*of = nullptr;
  const char* flag = nullptr;
  const char* is = nullptr;  // in TokenizerFiles; null: whatever Tokenizer::load finds there
};

struct TokenizerType {
  std::string_view name;
  std::vector<TypeFile> files;
  const char* config = nullptr;  // what tokenizer_config.json would say
};

constexpr const char *kVocabFile = "vocab-file", *kMergeFile = "merge-file",
                     *kTokenizerModel = "tokenizer-model";

const std::vector<TokenizerType>& types() {
  using Choice = TokenizerChoice;
  const TypeFile word_pieces{&Choice::vocab_file, kVocabFile, tokenizer::kVocabTxt},
      sentence_piece{&Choice::path, kTokenizerModel, tokenizer::kSentencePiece};
  static const std::vector<TokenizerType> kTypes = {
      {"GPT2BPETokenizer",
       {{&Choice::vocab_file, kVocabFile, tokenizer::kVocabJson},
        {&Choice::merge_file, kMergeFile, tokenizer::kMergesTxt}}},
      {"BertWordPieceLowerCase", {word_pieces}, R"({"do_lower_case": true})"},
      {"BertWordPieceCase", {word_pieces}, R"({"do_lower_case": false})"},
      {"SentencePieceTokenizer", {sentence_piece}},
      {"GPTSentencePieceTokenizer", {sentence_piece}},
      {"Llama2Tokenizer", {sentence_piece}},
      {"HuggingFaceTokenizer", {{&Choice::path, kTokenizerModel, nullptr}}},
  };
  return kTypes;
}

const TokenizerType* find_type(std::string_view name) {
  const auto found = std::ranges::find(types(), name, &TokenizerType::name);
  return found == types().end() ? nullptr : &*found;
}

/// The files of a choice that are given, with their flags.
constexpr TypeFile kGiven[] = {{&TokenizerChoice::vocab_file, kVocabFile},
                               {&TokenizerChoice::merge_file, kMergeFile},
                               {&TokenizerChoice::path, kTokenizerModel}};

void check_files(const TokenizerChoice& choice, const std::vector<TypeFile>& files) {
  std::vector<std::string> takes;
  for (const TypeFile& file : files) {
    takes.emplace_back(file.flag);
    require(!(choice.*file.of).empty(), "tokenizer-type ", choice.type, " needs ", file.flag,
            ", which is missing; give ", file.is == nullptr ? "its file or folder" : "the ",
            file.is == nullptr ? "" : file.is, " of the tokenizer");
  }
  for (const TypeFile& given : kGiven) {
    const bool taken = std::ranges::find(files, given.of, &TypeFile::of) != files.end();
    require(taken || (choice.*given.of).empty(), "tokenizer-type ", choice.type, " takes ",
            join(takes), " only, but ", given.flag, " is '", choice.*given.of,
            "'; leave it out, or give the type of your files");
  }
}

}  // namespace

std::vector<std::string> tokenizer_types() {
  std::vector<std::string> out;
  for (const TokenizerType& type : types()) out.emplace_back(type.name);
  return out;
}

bool is_tokenizer_type(std::string_view type) { return find_type(type) != nullptr; }

void require_complete(const TokenizerChoice& choice) {
  if (choice.type != "auto") {
    const TokenizerType* const type = find_type(choice.type);
    require(type != nullptr, "tokenizer-type is '", printable(choice.type), "'; it can be auto, ",
            join(tokenizer_types()));
    check_files(choice, type->files);
    require(choice.extra_ids == 0 || type->files.front().is == tokenizer::kVocabTxt,
            "vocab-extra-ids ", choice.extra_ids, " are tokens after those of a vocab.txt, but ",
            "tokenizer-type ", choice.type, " has none; leave it out, or give a tokenizer with ",
            "tokens <extra_id_0> and so on");
    return;
  }
  require(choice.extra_ids == 0, "vocab-extra-ids ", choice.extra_ids, " does nothing without a ",
          "tokenizer-type; add BertWordPieceLowerCase or BertWordPieceCase, with its vocab-file");
  for (const TypeFile& given : kGiven) {
    const std::string& file = choice.*given.of;
    require(given.of == &TokenizerChoice::path || file.empty(), given.flag, " '", file,
            "' does nothing without a tokenizer-type; add one, as GPT2BPETokenizer or ",
            "BertWordPieceLowerCase");
  }
}

namespace {

/// Those that the vocabulary does not have, a line each.
void add_extra_ids(std::string& vocab_txt, std::int64_t count) {
  const std::vector<std::string> lines = split(vocab_txt, '\n');
  const std::set<std::string, std::less<>> known(lines.begin(), lines.end());
  if (count > 0 && !vocab_txt.empty() && vocab_txt.back() != '\n') vocab_txt += '\n';
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string token = text("<extra_id_", i, ">");
    if (!known.contains(token)) vocab_txt += token + "\n";
  }
}

}  // namespace

Tokenizer load_tokenizer(const TokenizerChoice& choice) {
  require_complete(choice);
  if (choice.type == "auto") return Tokenizer::load(choice.path);
  TokenizerFiles files;
  const TokenizerType* const type = find_type(choice.type);
  for (const TypeFile& file : type->files) {
    if (file.is == nullptr) return Tokenizer::load(choice.*file.of);
    files[file.is] = read_file(choice.*file.of);
    if (file.is == tokenizer::kVocabTxt) add_extra_ids(files[file.is], choice.extra_ids);
  }
  if (type->config != nullptr) files[tokenizer::kConfigJson] = type->config;
  return Tokenizer::of(std::move(files), name_of(choice));
}

std::string name_of(const TokenizerChoice& choice) {
  std::vector<std::string> out;
  for (const TypeFile& given : kGiven) {
    if (!(choice.*given.of).empty()) out.push_back(choice.*given.of);
  }
  return join(out, " with ");
}

bool is_there(const TokenizerChoice& choice) {
  return std::ranges::all_of(kGiven, [&](const TypeFile& given) {
    std::error_code ignored;
    return (choice.*given.of).empty() || std::filesystem::exists(choice.*given.of, ignored);
  });
}

std::optional<std::int32_t> end_of_document(const Tokenizer& tokenizer) {
  const SpecialTokens& special = tokenizer.special_tokens();
  return special.eos ? special.eos : special.sep;
}

}  // namespace tessera
