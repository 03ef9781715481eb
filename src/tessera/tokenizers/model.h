#pragma once
/// Models: the tokens of a piece.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/json_part.h"
#include "tessera/tokenizers/merge_scratch.h"
#include "tessera/tokenizers/piece.h"
#include "tessera/tokenizers/token_table.h"

namespace tessera::tokenizer {

/// Memory that models need for a piece, kept from piece to piece.
struct ModelScratch {
  std::string text;
  Ids ids;
  MergeScratch merges;
  struct Best {
    double score = 0;
    std::int32_t begin = kNoId, id = kNoId;
  };
  std::vector<Best> best;  // of Unigram, by where a path ends
};

/// A model is read once and then asked by several threads at a time.
class Model {
 public:
  virtual ~Model() = default;
  /// The ids of a piece, which is not empty, behind those of `out`.
  virtual void encode(std::string_view piece, ModelScratch& scratch, Ids& out) const = 0;

  /// Bytes of a piece that a token of it stands for, its first one or another; 0: those that are
  /// left, of a token for what is unknown.
  virtual std::size_t bytes_of(std::int32_t id, bool first) const = 0;

  const TokenTable& tokens() const { return tokens_; }
  /// How many tokens it counts: the id of the first one that is added to it.
  std::int32_t count() const { return count_; }
  /// A token that no text has, beside the added ones.
  virtual bool is_special(std::int32_t) const { return false; }

 protected:
  TokenTable tokens_;
  std::int32_t count_ = 0;
};

/// The model that `part` describes. A file of old versions lacks the type: it then follows from the
/// fields. Errors: as of JsonPart; a type that is none of WordPiece, BPE, Unigram and WordLevel.
std::unique_ptr<Model> make_model(const JsonPart& part);

std::unique_ptr<Model> make_word_piece(const JsonPart& part);
std::unique_ptr<Model> make_bpe(const JsonPart& part);
std::unique_ptr<Model> make_unigram(const JsonPart& part);
std::unique_ptr<Model> make_word_level(const JsonPart& part);

/// Bytes of the token's spelling; 0: it is `unknown`.
std::size_t spelled_bytes(const TokenTable& tokens, std::int32_t id, std::int32_t unknown);
/// Reads {"token": id, ...}.
void read_vocabulary(const JsonPart& part, TokenTable& tokens);
/// The ids of "<0x00>" to "<0xFF>"; kNoId: there is none.
std::vector<std::int32_t> byte_tokens(const TokenTable& tokens);

}  // namespace tessera::tokenizer
