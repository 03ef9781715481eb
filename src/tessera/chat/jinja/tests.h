#pragma once
/// What stands behind `is`.

#include <string_view>

#include "tessera/chat/jinja/arguments.h"

namespace tessera::jinja {

bool is_test(std::string_view name);
/// Errors: Problem: arguments that do not fit; a value that the test is not for.
bool apply_test(Heap& heap, std::string_view name, const Value& value, const Arguments& arguments);

}  // namespace tessera::jinja
