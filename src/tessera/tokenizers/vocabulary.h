#pragma once
/// The room `tokenizers`: text to ids and back: bytes, characters, learned BPE, tokenizers of
/// others.
/// For: one value that is saved with every checkpoint, so that a run needs nothing beside its
/// folder.
/// Not for: which tokens make a sample (token_files, data).
/// Rejected: the tokenizers' own libraries, which are of other languages: their parts are rebuilt
/// and held to the originals on every code point. SentencePiece for learned tokens: it brings
/// protobuf and files of another form. Learned tokens that join words; normalisation of what is
/// learned.
///
/// Vocabularies: text to token ids and back.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/tokenizers/tokenizer.h"
#include "tessera/tokenizers/tokenizer_choice.h"

namespace tessera {

class Bpe;

/// Ids: of token files, whose text only their tokenizer knows; a token is written as its number.
enum class VocabularyKind { Bytes, Characters, Bpe, Tokenizer, Ids };

/// Ids of [PAD], [CLS], [SEP], [MASK].
using PairTokens = std::array<std::int32_t, 4>;

/// What vocabulary to make of a text.
struct VocabularyChoice {
  VocabularyChoice(VocabularyKind of, std::int64_t tokens = 0, TokenizerChoice made = {})  // NOLINT
      : kind(of), size(tokens), tokenizer(std::move(made)) {}
  VocabularyKind kind;
  std::int64_t size;  // of Bpe: how many tokens to learn at most; the others follow from the text
  TokenizerChoice tokenizer;  // of Tokenizer
};

/// A plain value that is saved beside every checkpoint: a model means nothing without it.
class Vocabulary {
 public:
  /// All 256 bytes; the id is the byte.
  static Vocabulary bytes();
  /// The distinct code points of `utf8`, numbered in the order of their code points (the recipe of
  /// nanoGPT's character example). Take the whole text, held-out part included, so that every part
  /// can be encoded.
  static Vocabulary characters(std::string_view utf8);
  /// Tokens learned from `utf8`, at most `size` (tokenizers/bpe.h). They spell any text, so take
  /// the part that trains alone. Errors: Fault::Usage: a size below 256.
  static Vocabulary bpe(std::string_view utf8, std::int64_t size);
  /// The tokens of another program. Texts are encoded without special tokens around them; those
  /// that are spelled in a text are found.
  static Vocabulary tokenizer(Tokenizer made);
  /// Numbers from 0 to size - 1, with a blank before each.
  static Vocabulary ids(std::int64_t size);
  static Vocabulary of(const VocabularyChoice& choice, std::string_view utf8);

  VocabularyKind kind() const { return kind_; }
  /// Those of a tokenizer that has all four, as BERT's and RoBERTa's have; <s> and </s> stand for
  /// [CLS] and [SEP] where these are not there. None: no text has such tokens.
  std::optional<PairTokens> pair_tokens() const;
  int size() const;
  /// What it was made of, of the kind Tokenizer; null: it is of another kind.
  const Tokenizer* made_elsewhere() const { return tokenizer_ ? &*tokenizer_ : nullptr; }

  /// One id per byte, per character, or per token that was learned.
  /// Errors: Fault::Data: characters that the vocabulary lacks, the first named with its place; not
  /// UTF-8.
  std::vector<std::int32_t> encode(std::string_view utf8) const;

  /// The same, and of each id the bytes of the text that it stands for.
  /// Errors: as of encode and Tokenizer::encode_spans.
  SpannedIds encode_spans(std::string_view utf8) const;

  /// The text of ids; ids outside the vocabulary become U+FFFD, because a model's output may be
  /// wider than its data's vocabulary. Of bytes, alone or in learned tokens, the result is UTF-8
  /// only where the ids spell it.
  std::string decode(std::span<const std::int32_t> ids) const;

  /// decode() as UTF-8, for a line of text: what the ids do not spell becomes U+FFFD.
  std::string decode_text(std::span<const std::int32_t> ids) const;

  std::string to_json() const;
  /// Reads what to_json writes; `where` names its file in messages. Errors: Fault::Checkpoint.
  static Vocabulary from_json(std::string_view json, const std::string& where);

  friend bool operator==(const Vocabulary& a, const Vocabulary& b);

 private:
  Vocabulary(VocabularyKind kind, std::u32string characters);
  explicit Vocabulary(Bpe learned);

  VocabularyKind kind_ = VocabularyKind::Bytes;
  std::u32string characters_;           // sorted; empty for bytes
  std::vector<std::int32_t> id_of_;     // by code point up to the largest known; -1: unknown
  std::shared_ptr<const Bpe> bpe_;      // of Bpe
  std::optional<Tokenizer> tokenizer_;  // of Tokenizer
  int num_ids_ = 0;                     // of Ids
};

/// The text of ids that come one at a time. Where a character, or a word of a tokenizer, is spelled
/// by several ids, it comes with the last of them.
class TextStream {
 public:
  /// `before`: the ids that the text goes on from, whose own text is not told again.
  TextStream(const Vocabulary& vocabulary, std::span<const std::int32_t> before);
  /// What is certain of the text with one more id.
  std::string add(std::int32_t id);
  /// What is left at the end.
  std::string rest();

 private:
  const Vocabulary& vocabulary_;
  std::vector<std::int32_t> ids_;  // those that the next text depends on
  std::size_t reported_ = 0;       // of these
};

/// The ids in a text, with blanks between. Errors: Fault::Data: a word that is no id below `below`,
/// with its place.
std::vector<std::int32_t> ids_in_text(std::string_view text, std::int64_t below);

/// "bytes", "characters", "bpe", "tokenizer", "ids"
std::string_view to_text(VocabularyKind kind);

}  // namespace tessera
