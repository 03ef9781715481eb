#pragma once
/// Tokens beside the model: found in a text before anything else is done with it.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/tokenizers/byte_trie.h"
#include "tessera/tokenizers/model.h"
#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

struct AddedToken {
  std::string content;
  bool single_word = false;  // matches between characters that are of no word
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and that behind it
  bool normalized = false;   // is searched for in the normalized text
  bool special = false;
  std::int32_t id = kNoId;
  std::string decoded;  // as it is decoded: normalized where it is searched for so
};

/// All added tokens of a file.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// As the reference, ids follow from the model: that of its token of the same spelling, else the
  /// next free one. `normalizer`: of the tokenizer, or null. An id in the file that differs is told
  /// in `notices`.
  AddedTokens(const JsonPart& file, const Model& model, const Normalizer& normalizer,
              std::vector<std::string>& notices);

  const std::vector<AddedToken>& all() const { return all_; }
  /// The token of this spelling, or null; the token that an id stands for, or null.
  const AddedToken* find(std::string_view content) const;
  const AddedToken* find(std::int32_t id) const;

  /// Parts of a text in order: `on_text` takes what is between tokens, by its begin and end.
  using OnText = FunctionRef<void(std::size_t begin, std::size_t end)>;
  using OnToken = FunctionRef<void(std::int32_t id, std::size_t begin, std::size_t end)>;
  /// Of tokens that are searched for in the text as it is given (`normalized` false), or in the
  /// normalized one. `special`: special tokens are found too.
  void split(std::string_view text, bool normalized, bool special, OnText on_text,
             OnToken on_token) const;

 private:
  std::vector<AddedToken> all_;
  TokenTable numbers_;                                 // of all_, by content
  std::unordered_map<std::int32_t, std::size_t> ids_;  // numbers in all_
  ByteTrie tries_[2];  // of tokens that are not normalized, and of those that are; values: of all_
  bool any_[2] = {false, false};
};

}  // namespace tessera::tokenizer
