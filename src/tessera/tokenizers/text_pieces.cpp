#include "tessera/tokenizers/text_pieces.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

struct PieceCharacter {
  CharacterKind kind = CharacterKind::Other;
  std::size_t size = 0;  // bytes; 0: the end of the text, or a tab or newline, which end a piece
};

PieceCharacter character_at(std::string_view utf8, std::size_t at) {
  if (at >= utf8.size() || utf8[at] == '\n' || utf8[at] == '\t') return {};
  const CodePoint c = code_point_at(utf8, at);
  if (c.size == 0) return {CharacterKind::Other, 1};
  return {kind_of(c.value), static_cast<std::size_t>(c.size)};
}

/// Bytes of the run of characters of one kind from `at` on, and of its last character.
struct PieceRun {
  std::size_t size = 0, last = 0;
};
PieceRun run_of(std::string_view utf8, std::size_t at, CharacterKind kind) {
  PieceRun out;
  for (PieceCharacter c = character_at(utf8, at); c.size > 0 && c.kind == kind;
       c = character_at(utf8, at + out.size)) {
    out.size += c.size;
    out.last = c.size;
  }
  return out;
}

std::size_t contraction(std::string_view utf8) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (starts_with(utf8, end)) return end.size();
  }
  return 0;
}

std::size_t piece_size(std::string_view utf8) {
  const PieceCharacter first = character_at(utf8, 0);
  if (first.size == 0) return 1;
  if (const std::size_t size = contraction(utf8); size > 0) return size;
  const std::size_t blank = utf8.front() == ' ' ? 1 : 0;
  const PieceCharacter word = character_at(utf8, blank);
  if (word.size > 0 && word.kind != CharacterKind::Blank)
    return blank + run_of(utf8, blank, word.kind).size;
  const PieceRun blanks = run_of(utf8, 0, CharacterKind::Blank);
  const bool ends = character_at(utf8, blanks.size).size == 0;
  return ends || blanks.size == blanks.last ? blanks.size : blanks.size - blanks.last;
}

}  // namespace

std::string_view take_piece(std::string_view& utf8) {
  const std::string_view out = utf8.substr(0, piece_size(utf8));
  utf8.remove_prefix(out.size());
  return out;
}

}  // namespace tessera
