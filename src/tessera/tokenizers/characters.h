#pragma once
/// What the tables of the Hugging Face library `tokenizers` say of characters.
///
/// The library asks several tables, of several versions of Unicode: that of its engine for patterns
/// (letters, numbers, blanks), an old one for BERT (controls, punctuation, accents), and that of
/// its language (white space, lower case). tests/golden/README.md has their differences.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/unicode.h"

namespace tessera::tokenizer {

using Traits = std::uint16_t;
inline constexpr Traits kLetter = 1 << 0,  // \p{L} of a pattern
    kNumber = 1 << 1,                      // \p{N} of a pattern
    kBlank = 1 << 2,                       // \s of a pattern, and white space
    kControl = 1 << 3,                     // what BERT's clean_text drops
    kPunctuation = 1 << 4,                 // what BERT and Punctuation isolate
    kAccent = 1 << 5,                      // Mn: what BERT drops as an accent
    kMark = 1 << 6,                        // what StripAccents drops
    kWord = 1 << 7,                        // \w of Whitespace, and of added tokens
    kNumeric = 1 << 8,                     // what Digits splits off
    kInert = 1 << 9,                       // no decomposition, and combining class 0
    kCased = 1 << 10;                      // lower case is another text

Traits traits_of(char32_t c);

/// traits_of() of the characters below 0x80.
const std::array<Traits, 128>& ascii_traits();

/// Its lower case, as one character at a time has it.
void append_lower(std::string& out, char32_t c);
void append_lower(std::u32string& out, char32_t c);

/// The text in a normal form; code points that the library's table does not know stay as they are.
void normalize_form(std::string& text, NormalForm form);
void normalize_form(std::u32string& text, NormalForm form);

}  // namespace tessera::tokenizer
