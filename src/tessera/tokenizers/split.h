#pragma once
/// How a piece is split at what a pattern matches.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/json_part.h"
#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// What becomes of a match.
enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

SplitBehavior behavior_of(const JsonPart& part, std::string_view missing = "");

/// A part of a piece, from `begin` to `end`; they follow each other without a gap.
struct Span {
  std::size_t begin = 0, end = 0;
  bool match = false;
};
using Spans = std::vector<Span>;

/// Hands on the parts of a piece that the spans leave; empty parts are none.
void split_at(const Piece& piece, Spans& spans, SplitBehavior behavior, PieceSink sink);

/// Hands on a part of a piece.
inline void hand_on(const Piece& piece, std::size_t begin, std::size_t end, PieceSink sink) {
  if (begin < end) sink({piece.text.substr(begin, end - begin), piece.at_start && begin == 0});
}

}  // namespace tessera::tokenizer
