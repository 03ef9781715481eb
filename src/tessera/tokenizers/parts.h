#pragma once
/// What a tokenizer consists of, and the way of a text through it.

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/added_tokens.h"
#include "tessera/tokenizers/decoders.h"
#include "tessera/tokenizers/model.h"
#include "tessera/tokenizers/post_processors.h"
#include "tessera/tokenizers/pre_tokenizers.h"
#include "tessera/tokenizers/tokenizer.h"
#include "tessera/tokenizers/word_cache.h"

namespace tessera {

struct Tokenizer::Parts {
  /// What a thread keeps from text to text.
  struct Scratch {
    tokenizer::ModelScratch model;
    tokenizer::WordCache words;
    std::string printed;
  };

  TokenizerFiles files;
  std::string where;
  std::vector<std::string> notices;
  tokenizer::Normalizer normalizer;        // may be empty
  tokenizer::PreTokenizing pre_tokenizer;  // may be empty
  std::unique_ptr<const tokenizer::Model> model;
  tokenizer::AddedTokens added;
  tokenizer::Templates templates;
  tokenizer::Decoder decoder;  // may be empty
  SpecialTokens special;
  bool keeps_end = false;  // TextFrame::keeps_end
  bool types = true;       // models get the types of tokens; else all are 0
  std::int32_t size = 0;

  void read_document(const tokenizer::JsonPart& root);
  /// Which end of a text is cut: truncation_side of `config`, else what `root` says; and whether
  /// model_input_names has types.
  void read_use(const tokenizer::JsonPart& config, const tokenizer::JsonPart& root);
  /// From a .model of SentencePiece.
  void read_model(const std::string& bytes, const tokenizer::JsonPart& place);

  /// The ids of a text without what stands around it, behind those of `out`.
  void append(std::string_view text, const EncodeOptions& options, Scratch& scratch,
              tokenizer::Ids& out) const;
  /// The same with the place of each in `text`, which is UTF-8.
  void append_spans(std::string_view text, Scratch& scratch, SpannedIds& out) const;
  /// Ids, and type ids where they are asked for, of the texts in a template.
  void fill(const tokenizer::Template& form, std::span<const std::string_view> texts,
            const EncodeOptions& options, Scratch& scratch, tokenizer::Ids& out,
            tokenizer::Ids* types) const;

  std::unique_ptr<Scratch> take_scratch() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;

 private:
  void append_piece(const tokenizer::Piece& piece, Scratch& scratch, tokenizer::Ids& out) const;
  void append_word(std::string_view word, Scratch& scratch, tokenizer::Ids& out) const;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace tessera
