#pragma once
/// Unicode text as UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// What some programs put before a text; it is no part of it.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// One code point read from bytes; size 0: the bytes there are no code point.
struct CodePoint {
  char32_t value = 0;
  int size = 0;  // bytes
};

/// The code point that begins at byte `offset` < bytes.size().
CodePoint code_point_at(std::string_view bytes, std::size_t offset);

/// The offset of the first byte that is not UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view bytes);

/// `bytes` as UTF-8: U+FFFD stands for each byte that is none, and one for what begins a code point
/// and does not end it, as decoders of Python and Rust have it.
///
/// Source:  The Unicode Standard 14, section 3.9, substitution of maximal subparts.
std::string replaced_utf8(std::string_view bytes);

void append_utf8(std::string& out, char32_t code_point);

/// How many code points valid UTF-8 has.
std::int64_t count_characters(std::string_view utf8);

/// "U+00E9"
std::string code_point_text(char32_t code_point);

}  // namespace tessera
