#pragma once
/// Vocabularies: text to token ids and back.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class VocabularyKind { Bytes, Characters };

/// A plain value that is saved beside every checkpoint: a model means nothing without it.
class Vocabulary {
 public:
  /// All 256 bytes; the id is the byte.
  static Vocabulary bytes();
  /// The distinct code points of `utf8`, numbered in the order of their code points (the recipe of
  /// nanoGPT's character example). Take the whole text, held-out part included, so that every part
  /// can be encoded.
  static Vocabulary characters(std::string_view utf8);
  static Vocabulary of(VocabularyKind kind, std::string_view utf8);

  VocabularyKind kind() const { return kind_; }
  int size() const;

  /// One id per byte or per character.
  /// Errors: Fault::Data: characters that the vocabulary lacks, the first named with its place; not
  /// UTF-8.
  std::vector<std::int32_t> encode(std::string_view utf8) const;

  /// The text of ids; ids outside the vocabulary become U+FFFD, because a model's output may be
  /// wider than its data's vocabulary. Of bytes the result is UTF-8 only where the ids spell it.
  std::string decode(std::span<const std::int32_t> ids) const;

  std::string to_json() const;
  /// Reads what to_json writes; `where` names its file in messages. Errors: Fault::Checkpoint.
  static Vocabulary from_json(std::string_view json, const std::string& where);

  friend bool operator==(const Vocabulary&, const Vocabulary&) = default;

 private:
  Vocabulary(VocabularyKind kind, std::u32string characters);

  VocabularyKind kind_ = VocabularyKind::Bytes;
  std::u32string characters_;        // sorted; empty for bytes
  std::vector<std::int32_t> id_of_;  // by code point up to the largest known; -1: unknown
};

/// "bytes", "characters"
std::string_view to_text(VocabularyKind kind);

}  // namespace tessera
