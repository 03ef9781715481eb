#pragma once
/// What flows from a text to a model: the text as normalizers change it, then its pieces.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/function_ref.h"

namespace tessera::tokenizer {

using Ids = std::vector<std::int32_t>;
inline constexpr std::int32_t kNoId = -1;

/// A part of a normalized text: no token goes beyond it.
struct Piece {
  std::string_view text;
  /// Its first character is the first one of the text as it was given. Metaspace asks for it.
  bool at_start = false;
};

using PieceSink = FunctionRef<void(const Piece&)>;

/// Takes a piece apart; what it hands on lives as long as the call to the sink.
using PreTokenizer = std::function<void(const Piece&, PieceSink)>;

/// A text while it is normalized.
struct NormalizedText {
  std::string text;
  /// Its first character stands for the first one before normalization.
  bool keeps_start = true;
  /// Bytes before normalization.
  std::size_t given = text.size();

  /// Normalizers one behind the other may grow a text without end: each result is asked.
  /// Errors: Fault::Data: more than 64 bytes for each byte that was given, and 4096.
  void require_bounded(std::size_t bytes) const;
};

using Normalizer = std::function<void(NormalizedText&)>;

}  // namespace tessera::tokenizer
