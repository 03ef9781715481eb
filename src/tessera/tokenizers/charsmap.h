#pragma once
/// The precompiled rules of SentencePiece: which strings a normalizer replaces, and by what.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/json_part.h"

namespace tessera::tokenizer {

/// A double-array trie and the replacements behind it.
class Charsmap {
 public:
  Charsmap() = default;
  /// `bytes`: the size of the trie in bytes (u32, little-endian), the trie's units (u32), then the
  /// replacements, each ended by a zero byte. Errors: Fault::Data at `part`: sizes that do not fit.
  Charsmap(std::string_view bytes, const JsonPart& part);

  struct Match {
    std::size_t size = 0;  // bytes of the text; 0: no rule begins it
    std::string_view replacement;
  };
  Match shortest(std::string_view text) const { return find(text, true); }
  Match longest(std::string_view text) const { return find(text, false); }
  bool empty() const { return units_.empty(); }

 private:
  Match find(std::string_view text, bool shortest) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

/// Bytes of base64 text; blanks between are passed over. Errors: Fault::Data at `part`.
std::string bytes_of_base64(std::string_view text, const JsonPart& part);
std::string base64_of_bytes(std::string_view bytes);

}  // namespace tessera::tokenizer
