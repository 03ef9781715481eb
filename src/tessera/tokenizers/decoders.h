#pragma once
/// Decoders: the text of tokens.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/json_part.h"

namespace tessera::tokenizer {

/// Changes tokens, one behind the other, until they are the text when joined.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;

/// The decoder that `part` describes. Errors: as of JsonPart; a type that the table lacks.
Decoder make_decoder(const JsonPart& part);

/// The byte of a token like "<0x0A>"; -1: it is none.
int byte_of_token(std::string_view token);

}  // namespace tessera::tokenizer
