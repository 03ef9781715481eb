#pragma once
/// What stands behind |.

#include <string>
#include <string_view>

#include "tessera/chat/jinja/arguments.h"

namespace tessera::jinja {

bool is_filter(std::string_view name);
/// Errors: Problem: arguments that do not fit; a value that the filter is not for.
Value apply_filter(Heap& heap, std::string_view name, const Value& value,
                   const Arguments& arguments);

struct FilterCall {
  Heap& heap;
  std::string_view name;
  const Value& value;
  const Arguments& arguments;

  Bound bind(std::string_view parameters) const { return Bound(name, arguments, parameters); }
  /// The value as text. Errors: Problem: it is marked safe, of which most filters make other texts.
  std::string text() const;
};

struct FilterRow {
  std::string_view name;
  Value (*apply)(const FilterCall& call);
};
/// Filters of lists and dicts; nullptr: no such one.
const FilterRow* find_item_filter(std::string_view name);

}  // namespace tessera::jinja
