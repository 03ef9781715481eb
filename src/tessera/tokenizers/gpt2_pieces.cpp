#include "tessera/tokenizers/gpt2_pieces.h"

#include "tessera/base/utf8.h"
#include "tessera/tokenizers/characters.h"

namespace tessera::tokenizer {

namespace {

struct KindOfCharacter {
  Traits kind = 0;  // kLetter, kNumber, kBlank, or 0 for all others
  std::size_t size = 0;
};

constexpr Traits kKinds = kLetter | kNumber | kBlank;

KindOfCharacter kind_at(std::string_view text, std::size_t at,
                        const std::array<Traits, 128>& ascii) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {static_cast<Traits>(ascii[byte] & kKinds), 1};
  const CodePoint c = code_point_at(text, at);
  if (c.size == 0) return {0, 1};
  return {static_cast<Traits>(traits_of(c.value) & kKinds), static_cast<std::size_t>(c.size)};
}

std::size_t contraction_size(std::string_view text) {
  if (text.size() < 2) return 0;
  switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    case 'r':
    case 'v': return text.size() > 2 && text[2] == 'e' ? 3 : 0;
    case 'l': return text.size() > 2 && text[2] == 'l' ? 3 : 0;
    default: return 0;
  }
}

}  // namespace

std::size_t gpt2_piece_size(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] == '\'') {
    if (const std::size_t size = contraction_size(text); size > 0) return size;
  }
  const std::array<Traits, 128>& ascii = ascii_traits();
  std::size_t at = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const KindOfCharacter first = kind_at(text, at, ascii);
  if (first.kind != kBlank) {
    at += first.size;
    while (at < text.size()) {
      const KindOfCharacter next = kind_at(text, at, ascii);
      if (next.kind != first.kind) break;
      at += next.size;
    }
    return at;
  }
  // White space, but for its last character where something else follows.
  std::size_t end = 0, last = 0;
  while (end < text.size()) {
    const KindOfCharacter next = kind_at(text, end, ascii);
    if (next.kind != kBlank) break;
    last = next.size;
    end += next.size;
  }
  return end == text.size() || end == last ? end : end - last;
}

}  // namespace tessera::tokenizer
