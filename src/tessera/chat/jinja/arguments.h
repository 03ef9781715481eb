#pragma once
/// Arguments of filters, tests, methods and functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/chat/jinja/value.h"

namespace tessera::jinja {

struct Arguments {
  std::vector<Value> given;
  std::vector<std::pair<std::string, Value>> named;
};

/// Arguments by the numbers of parameters.
class Bound {
 public:
  /// `parameters`: names with blanks between; those behind ";" may be left out. Errors: Problem:
  /// one too many, one that is missing, an unknown name.
  Bound(std::string_view of, const Arguments& arguments, std::string_view parameters);

  /// nullptr: left out.
  const Value* get(std::size_t i) const { return values_[i] ? &*values_[i] : nullptr; }
  /// Errors: Problem: another kind of value.
  const TextValue& text(std::size_t i) const;
  std::int64_t whole(std::size_t i, std::int64_t otherwise) const;
  bool truth(std::size_t i, bool otherwise) const;
  /// Left out or none: nothing.
  std::optional<std::string_view> some_text(std::size_t i) const;

 private:
  [[noreturn]] void wrong(std::size_t i, std::string_view due) const;
  std::string of_;
  std::vector<std::string> names_;
  std::vector<std::optional<Value>> values_;
};

}  // namespace tessera::jinja
