#pragma once
/// Which tokenizer is meant: files of it, and how they are read, in the words of Megatron-LM.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/tokenizer.h"

namespace tessera {

struct TokenizerChoice {
  std::string type = "auto";           // of tokenizer_types(); auto: the files at `path` tell
  std::string path;                    // a file or a folder; empty: none
  std::string vocab_file, merge_file;  // empty: none
  std::int64_t extra_ids = 0;  // tokens <extra_id_0>, <extra_id_1> ... behind those of a vocab.txt

  bool none() const {
    return type == "auto" && path.empty() && vocab_file.empty() && merge_file.empty();
  }
  friend bool operator==(const TokenizerChoice&, const TokenizerChoice&) = default;
};

/// The types of Megatron-LM, without auto:
///   GPT2BPETokenizer                         vocab_file (vocab.json) and merge_file (merges.txt)
///   BertWordPieceLowerCase, BertWordPieceCase                            vocab_file (vocab.txt)
///   SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer   path, of a .model
///   HuggingFaceTokenizer                     path, a file or a folder of any kind
/// The first three read these files alone, and nothing that lies beside them.
std::vector<std::string> tokenizer_types();
bool is_tokenizer_type(std::string_view type);

/// Looks at the choice, and at no file. Errors: Fault::Usage: an unknown type; files that the type
/// needs or does not take.
void require_complete(const TokenizerChoice& choice);

/// Errors: as of require_complete and Tokenizer::load.
Tokenizer load_tokenizer(const TokenizerChoice& choice);

/// For messages: "gpt2/vocab.json with gpt2/merges.txt".
std::string name_of(const TokenizerChoice& choice);
/// All files that it names are there.
bool is_there(const TokenizerChoice& choice);

/// The token that ends a document, as Megatron-LM takes it: <|endoftext|> of GPT-2, </s>, and
/// [SEP] where there is no end of a text.
std::optional<std::int32_t> end_of_document(const Tokenizer& tokenizer);

}  // namespace tessera
