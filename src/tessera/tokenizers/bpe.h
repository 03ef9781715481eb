#pragma once
/// Byte-pair encoding: tokens are bytes, and what often stands side by side in a text.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/tokenizers/merge_table.h"

namespace tessera {

/// The tokens of byte-level BPE, in the manner of GPT-2: the 256 bytes, so that no text is unknown,
/// then one for each merge of two tokens. A plain value.
/// Ids 0 to 255 are those of tokenizers/byte_tokens.h.
class Bpe {
 public:
  /// The bytes alone.
  Bpe();
  /// Learns merges until there are `size` tokens, or no pair of tokens stands twice in the pieces
  /// of `utf8` (tokenizers/text_pieces.h). The most frequent pair is merged first; of several the
  /// one with the least ids. A function of the text and the size alone. Time: of the order of n log
  /// n for n bytes of distinct pieces, whatever the number of merges. Errors: Fault::Usage: a size
  /// below 256. Source: Sennrich et al. 2016, arXiv 1508.07909, section 3.2.
  static Bpe learn(std::string_view utf8, std::int64_t size);

  /// Merges as text, one in each line, as in GPT-2's merges.txt without its first line: two tokens
  /// with a blank between them, in which a byte that does not print is the character 256 + n.
  std::string merges_text() const;
  /// Reads what merges_text() writes.
  /// Errors: Fault::Data: a line that is not two known tokens, or one that is there before.
  static Bpe from_merges_text(std::string_view lines);

  /// Tokens: 256, and one for each merge but those that spell a token that is there already.
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The bytes of a token.
  const std::string& token(std::int32_t id) const { return tokens_[static_cast<std::size_t>(id)]; }

  /// The tokens of any bytes: in each piece, the merge that was learned first is made first, from
  /// the left. Their bytes, joined, are the text.
  std::vector<std::int32_t> encode(std::string_view text) const;

  friend bool operator==(const Bpe& a, const Bpe& b) { return a.merges_ == b.merges_; }

 private:
  struct Merge {
    std::int32_t left = 0, right = 0, product = 0;
    friend bool operator==(const Merge&, const Merge&) = default;
  };
  /// Adds the merge of these two, unless it is there; whether it was added. Its token is new where
  /// none is spelled so.
  bool add(std::int32_t left, std::int32_t right);
  std::int32_t product(std::int32_t left, std::int32_t right) const {
    return table_.find(left, right)->product;
  }

  std::vector<Merge> merges_;
  std::vector<std::string> tokens_;                    // by id
  std::unordered_map<std::string, std::int32_t> ids_;  // of tokens
  MergeTable table_;                                   // of merges_, whose numbers are the ranks
};

}  // namespace tessera
