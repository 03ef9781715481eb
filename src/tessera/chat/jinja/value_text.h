#pragma once
/// Values as text: as Python's str, repr and json.dumps have them.

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/chat/jinja/value.h"

namespace tessera::jinja {

/// str(value). Errors: Problem: a function, a generator and the like, which print their address.
void append_str(Heap& heap, std::string& out, const Value& value);
std::string str(Heap& heap, const Value& value);

struct JsonForm {
  std::optional<std::string> indent;  // of a level; none: one line
  std::string item_separator = ", ", key_separator = ": ";
  bool ascii = false;  // other characters are escapes
  bool sorted = false;
};
/// json.dumps(value). Errors: Problem: what JSON has not.
std::string json_of(Heap& heap, const Value& value, const JsonForm& form);

/// repr(number)
std::string python_number(double number);

}  // namespace tessera::jinja
