#pragma once
/// Normalizers: what a text becomes before it is split.

#include "tessera/tokenizers/json_part.h"
#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// The normalizer that `part` describes. Errors: as of JsonPart; a type that the table lacks.
Normalizer make_normalizer(const JsonPart& part);

Normalizer make_bert_normalizer(const JsonPart& part);
Normalizer make_precompiled(const JsonPart& part);

/// The characters that stand for bytes in GPT-2's vocabulary, in place of the bytes.
void print_bytes(std::string_view text, std::string& out);

}  // namespace tessera::tokenizer
