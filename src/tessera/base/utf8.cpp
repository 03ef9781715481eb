#include "tessera/base/utf8.h"

#include <algorithm>

namespace tessera {

namespace {

/// Bytes of the code point that begins with `lead`; 0: none does.
int size_behind(unsigned char lead) {
  if (lead < 0x80) return 1;
  return lead >= 0xC2 && lead <= 0xDF   ? 2
         : (lead & 0xF0) == 0xE0        ? 3
         : lead >= 0xF0 && lead <= 0xF4 ? 4
                                        : 0;
}

/// Of bytes that are no code point: how many of them begin one, and 1 where none does.
std::size_t broken_size(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  // Behind some leads the second byte would make an overlong form, a surrogate, or too large a
  // number.
  const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  const auto whole = static_cast<std::size_t>(size_behind(lead));
  std::size_t out = 1;
  while (out < whole && out < bytes.size() && byte(out) >= (out == 1 ? least : 0x80) &&
         byte(out) <= (out == 1 ? most : 0xBF))
    ++out;
  return out;
}

}  // namespace

CodePoint code_point_at(std::string_view bytes, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[offset + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const int size = size_behind(lead);
  if (size == 0 || offset + static_cast<std::size_t>(size) > bytes.size()) return {};
  char32_t value = lead & (0x7Fu >> size);
  for (int i = 1; i < size; ++i) {
    const unsigned char next = byte(static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return {};
    value = (value << 6) | (next & 0x3Fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[size] || value > 0x10FFFF || surrogate) return {};
  return {value, size};
}

std::size_t find_invalid_utf8(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const int size = code_point_at(bytes, at).size;
    if (size == 0) return at;
    at += static_cast<std::size_t>(size);
  }
  return std::string_view::npos;
}

std::string replaced_utf8(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t good = std::min(find_invalid_utf8(bytes), bytes.size());
    out += bytes.substr(0, good);
    bytes.remove_prefix(good);
    if (bytes.empty()) break;
    append_utf8(out, U'\uFFFD');
    bytes.remove_prefix(broken_size(bytes));
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t bits) {
    out += static_cast<char>(static_cast<unsigned char>(bits));
  };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F)), put(0x80 | ((c >> 6) & 0x3F)),
        put(0x80 | (c & 0x3F));
  }
}

std::int64_t count_characters(std::string_view utf8) {
  // Every code point has exactly one byte that is not a continuation.
  return std::count_if(utf8.begin(), utf8.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string code_point_text(char32_t code_point) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string digits;
  for (char32_t rest = code_point; rest != 0 || digits.size() < 4; rest >>= 4)
    digits += kDigits[rest & 15];
  std::reverse(digits.begin(), digits.end());
  return "U+" + digits;
}

}  // namespace tessera
