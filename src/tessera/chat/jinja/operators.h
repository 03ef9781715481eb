#pragma once
/// Arithmetic as Python has it.

#include <string_view>

#include "tessera/chat/jinja/value.h"

namespace tessera::jinja {

/// a + b, and - * / // % **. Errors: Problem: these have no such operation; a result that is too
/// large; a division by 0; %, where a text is formatted.
Value binary(Heap& heap, std::string_view operation, const Value& a, const Value& b);
/// -a or +a
Value unary(std::string_view operation, const Value& a);
/// a == b, and != < <= > >= in, not in.
bool compare(Heap& heap, std::string_view operation, const Value& a, const Value& b);

}  // namespace tessera::jinja
