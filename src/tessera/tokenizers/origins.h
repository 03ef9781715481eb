#pragma once
/// Which part of a text each part of what became of it stands for.

#include <cstddef>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// Bytes [begin, end) that something stands for.
struct Origin {
  std::size_t begin = 0, end = 0;
};

/// For each byte of `normalized`, the characters of `text` that it was made of; `text` is UTF-8 and
/// was normalized by `normalizer`.
///
/// The normalizer is asked what becomes of each character alone, and, where that does not go on
/// with `normalized`, of the characters from there on together, as few as will do. So what
/// normalizers do to one character, or to some that stand side by side, is followed, and no
/// normalizer has to tell. Errors: Fault::Data: more than kMostTogether belong together.
inline constexpr int kMostTogether = 32;
std::vector<Origin> origins_of(std::string_view text, std::string_view normalized,
                               const Normalizer& normalizer);

inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
/// For each byte of `piece`, its place in `text`, of which it is a piece from `cursor` on, and
/// moves `cursor` behind it. Blanks may stand as U+2581; what was put before the piece, a blank or
/// that, is kNowhere. Errors: Fault::Data: something else of the piece is not in the text.
std::vector<std::size_t> places_in(std::string_view text, std::string_view piece,
                                   std::size_t& cursor);

}  // namespace tessera::tokenizer
