#pragma once
/// Pre-tokenizers: the pieces of a normalized text.

#include "tessera/tokenizers/json_part.h"
#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// A pre-tokenizer, and what remains to be done to each piece that it hands on.
struct PreTokenizing {
  PreTokenizer split;
  /// The model sees the characters that stand for the bytes of a piece (print_bytes). Of ByteLevel:
  /// pieces are their own keys in a cache then, and are printed when they are new.
  bool prints = false;
};

/// The pre-tokenizer that `part` describes. Errors: as of JsonPart; a type that the table lacks.
PreTokenizing make_pre_tokenizer(const JsonPart& part);

PreTokenizing make_byte_level(const JsonPart& part);
PreTokenizing make_metaspace(const JsonPart& part);
PreTokenizing make_bert_pieces(const JsonPart& part);

}  // namespace tessera::tokenizer
