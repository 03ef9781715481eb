#pragma once
/// Patterns as tokenizer files spell them, for the engine that runs them here.

#include <string>
#include <string_view>

#include "tessera/tokenizers/json_part.h"

namespace tessera::tokenizer {

/// The reference's engine is Oniguruma with the syntax of Ruby, ours is PCRE2. Where a class of one
/// letter means another set of characters there, it is spelled out: \s, \S, \w, \W, \h, \H.
/// Errors: Fault::Data at `part`: an escape that cannot be said otherwise.
std::string pcre2_pattern(std::string_view pattern, const JsonPart& part);

}  // namespace tessera::tokenizer
