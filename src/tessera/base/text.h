#pragma once
/// Text from values: `text("hidden ", 12, " of ", shape)`. A type takes part by having `to_text(const T&)`; a function
/// without arguments is asked for its text when it is due: what a message says is made when the message is.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tessera {

std::string number_text(std::int64_t value);
std::string number_text(std::uint64_t value);
/// The shortest decimal that reads back as the same number.
std::string number_text(double value);
std::string number_text(float value);

template <typename T>
void append_text(std::string& out, const T& part) {
  if constexpr (std::is_same_v<T, bool>) {
    out += part ? "true" : "false";
  } else if constexpr (std::is_same_v<T, char>) {
    out += part;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::is_floating_point_v<T>) {
    out += number_text(part);
  } else if constexpr (std::is_unsigned_v<T>) {
    out += number_text(static_cast<std::uint64_t>(part));
  } else if constexpr (std::is_integral_v<T>) {
    out += number_text(static_cast<std::int64_t>(part));
  } else if constexpr (std::is_invocable_v<const T&>) {
    append_text(out, part());
  } else {
    out += to_text(part);  // found beside the type
  }
}

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

/// "a, b, c"
template <typename Items>
std::string join(const Items& items, std::string_view separator = ", ") {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    append_text(out, item);
  }
  return out;
}

std::vector<std::string> split(std::string_view line, char separator);
std::string_view trim(std::string_view line);
bool starts_with(std::string_view line, std::string_view prefix);

/// 1234567 -> "1,234,567"
std::string grouped(std::int64_t value);
/// 1536 -> "1.50 KiB"
std::string bytes_text(std::int64_t bytes);

/// The known names nearest to `name` by edit distance, best first, at most `count`; far ones are left out.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& known, int count = 3);

}  // namespace tessera
