#pragma once
/// Methods of texts and dicts, and functions that every template has.

#include <ctime>
#include <string>
#include <string_view>

#include "tessera/chat/jinja/arguments.h"

namespace tessera::jinja {

/// Whether a value has a method of this name. Errors: Problem: Python's has one that is not
/// supported.
bool is_method(const Value& value, std::string_view name);
/// Errors: Problem: arguments that do not fit.
Value call_method(Heap& heap, const Value& self, std::string_view name, const Arguments& arguments);

/// raise_exception(...) of a template: it refuses what it is given.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

bool is_function(std::string_view name);
/// range, dict, namespace, raise_exception, strftime_now, whose time is `now`. Errors: Problem:
/// arguments that do not fit; Refusal.
Value call_function(Heap& heap, std::string_view name, const Arguments& arguments,
                    const std::tm& now);

}  // namespace tessera::jinja
