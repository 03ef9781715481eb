#include "tessera/files/json_fault.h"

#include <charconv>
#include <cstdint>

#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::size_t kEscape = 6;  // bytes of \uXXXX

/// What the escape \uXXXX at `at` stands for; -1: there is none.
std::int32_t escaped_unit(std::string_view bytes, std::size_t at) {
  if (bytes.size() < at + kEscape || bytes[at] != '\\' || bytes[at + 1] != 'u') return -1;
  std::int32_t out = -1;
  const char* const end = bytes.data() + at + kEscape;
  const auto [stop, error] = std::from_chars(bytes.data() + at + 2, end, out, 16);
  return error == std::errc() && stop == end ? out : -1;
}

/// Where the first escape is that is half of a pair; npos: nowhere.
std::size_t find_lone_surrogate(std::string_view bytes) {
  const auto is_first = [](std::int32_t unit) { return unit >= 0xD800 && unit < 0xDC00; };
  const auto is_second = [](std::int32_t unit) { return unit >= 0xDC00 && unit < 0xE000; };
  for (std::size_t at = bytes.find('\\'); at < bytes.size(); at = bytes.find('\\', at)) {
    const std::int32_t unit = escaped_unit(bytes, at);
    const bool pair = is_first(unit) && is_second(escaped_unit(bytes, at + kEscape));
    if (is_second(unit) || (is_first(unit) && !pair)) return at;
    at += pair ? 2 * kEscape : unit >= 0 ? kEscape : 2;  // of others, the character behind it too
  }
  return std::string_view::npos;
}

}  // namespace

std::string json_fault(std::string_view bytes, std::string_view instead) {
  const std::size_t at = find_lone_surrogate(bytes);
  if (at == std::string_view::npos) return text("this is not JSON; give ", instead);
  return text("the escape ", bytes.substr(at, kEscape), " at byte ", at + 1,
              " is half of a character (a lone surrogate), which is not valid text, as when a ",
              "text is cut within an emoji: write the whole pair, or remove the escape");
}

}  // namespace tessera
