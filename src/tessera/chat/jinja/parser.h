#pragma once
/// Templates from text.

#include <string_view>

#include "tessera/chat/jinja/syntax.h"

namespace tessera::jinja {

/// Errors: PlacedProblem: what is no template, or not supported; `source` is UTF-8.
Syntax parse(std::string_view source);

}  // namespace tessera::jinja
