#pragma once
/// The pieces that GPT-2's pattern finds, without a machine for patterns.

#include <string_view>

#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// The pattern as files spell it:
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Every text is covered by its matches. `text` is UTF-8. Returns the bytes of the first one, 0 for
/// an empty text.
std::size_t gpt2_piece_size(std::string_view text);

}  // namespace tessera::tokenizer
