#include "tessera/base/unicode.h"

#include <algorithm>

namespace tessera {

namespace {

bool is_in(std::span<const CodePointRange> ranges, char32_t c) {
  const auto after = std::ranges::upper_bound(ranges, c, {}, &CodePointRange::first);
  return after != ranges.begin() && c <= after[-1].last;
}

bool is_blank(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace

CharacterKind kind_of(char32_t c) {
  if (is_blank(c)) return CharacterKind::Blank;
  if (c < 0x80) {  // most text, without a search
    const char32_t lower = c | 0x20;
    return lower >= 'a' && lower <= 'z' ? CharacterKind::Letter
           : c >= '0' && c <= '9'       ? CharacterKind::Number
                                        : CharacterKind::Other;
  }
  return is_in(letter_ranges(), c)   ? CharacterKind::Letter
         : is_in(number_ranges(), c) ? CharacterKind::Number
                                     : CharacterKind::Other;
}

}  // namespace tessera
