#include "tessera/chat/jinja/characters.h"

#include <algorithm>

#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"
#include "tessera/chat/jinja/place.h"

namespace tessera::jinja {

namespace {

constexpr bool is_small(char32_t c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_capital(char32_t c) { return c >= 'A' && c <= 'Z'; }

/// Calls `take` with each character and its bytes.
template <typename Take>
void each_character(std::string_view text, const Take& take) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const auto size = static_cast<std::size_t>(std::max(c.size, 1));
    take(c.value, text.substr(at, size));
    at += size;
  }
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(is_capital(c) ? c + 32 : c);
    return;
  }
  if (c == 0x3A3) bad("the small letter of 'Σ' depends on where it stands; it is not supported");
  for (const char32_t small : lower_case(c)) append_utf8(out, small);
}

/// Its capital, or that at the beginning of a word, is several characters, another character than
/// the library says, or one of two.
bool has_odd_capital(char32_t c) {
  constexpr CodePointRange kOdd[] = {{0xDF, 0xDF},     {0x1C4, 0x1CC},   {0x1F1, 0x1F3},
                                     {0x345, 0x345},   {0x10D0, 0x10FF}, {0x1F80, 0x1FFF},
                                     {0x2170, 0x217F}, {0x24D0, 0x24E9}};
  return std::ranges::any_of(
      kOdd, [&](const CodePointRange& range) { return c >= range.first && c <= range.last; });
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(is_small(c) ? c - 32 : c);
    return;
  }
  const Category category = category_of(c);
  const bool odd = has_odd_capital(c);
  if (!odd && category != Category::Ll && category != Category::Lt) return append_utf8(out, c);
  const char32_t capital = upper_case(c);
  if (odd || capital == c || lower_case(capital) != std::u32string(1, c)) {
    std::string shown;
    append_utf8(shown, c);
    bad("the capital of '", shown, "' (", code_point_text(c), ") is not supported");
  }
  append_utf8(out, capital);
}

bool has_case(char32_t c) {
  if (c < 0x80) return is_small(c) || is_capital(c);
  const Category category = category_of(c);
  return category == Category::Lu || category == Category::Ll || category == Category::Lt;
}

/// Bytes of the last character.
std::size_t last_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (text[text.size() - size] & 0xC0) == 0x80) ++size;
  return size;
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> out;
  text = stripped(text, Ends::Left);
  while (!text.empty()) {
    if (most >= 0 && std::ssize(out) == most) {
      out.push_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size()) {
      const CodePoint c = code_point_at(text, end);
      if (is_space(c.value)) break;
      end += static_cast<std::size_t>(std::max(c.size, 1));
    }
    out.push_back(text.substr(0, end));
    text = stripped(text.substr(end), Ends::Left);
  }
  return out;
}

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return kind_of(c) == CharacterKind::Blank;
}

bool is_printed(char32_t c) {
  if (c < 0x80) return c >= ' ' && c < 0x7F;
  switch (category_of(c)) {
    case Category::Cc:
    case Category::Cf:
    case Category::Cs:
    case Category::Co:
    case Category::Cn:
    case Category::Zl:
    case Category::Zp:
    case Category::Zs: return false;
    default: return true;
  }
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string_view stripped(std::string_view text, Ends ends, std::optional<std::string_view> chars) {
  const auto goes = [&](char32_t c, std::string_view bytes) {
    return chars ? chars->find(bytes) != std::string_view::npos : is_space(c);
  };
  while (ends != Ends::Right && !text.empty()) {
    const CodePoint c = code_point_at(text, 0);
    const auto size = static_cast<std::size_t>(std::max(c.size, 1));
    if (!goes(c.value, text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (ends != Ends::Left && !text.empty()) {
    const std::size_t size = last_size(text), at = text.size() - size;
    if (!goes(code_point_at(text, at).value, text.substr(at))) break;
    text.remove_suffix(size);
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string out;
  each_character(text, [&](char32_t c, std::string_view) { append_lower(out, c); });
  return out;
}

std::string upper(std::string_view text) {
  std::string out;
  each_character(text, [&](char32_t c, std::string_view) { append_upper(out, c); });
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  bool first = true;
  each_character(text, [&](char32_t c, std::string_view) {
    first ? append_upper(out, c) : append_lower(out, c);
    first = false;
  });
  return out;
}

std::string titled(std::string_view text) {
  std::string out;
  bool inside = false;
  each_character(text, [&](char32_t c, std::string_view) {
    inside ? append_lower(out, c) : append_upper(out, c);
    inside = has_case(c);
  });
  return out;
}

std::vector<std::string_view> split_text(std::string_view text,
                                         std::optional<std::string_view> separator,
                                         std::int64_t most, bool from_right) {
  if (!separator && from_right && most >= 0)
    bad("rsplit() with a number and no separator is not supported");
  if (!separator) return split_at_space(text, most);
  if (separator->empty()) bad("split() with an empty separator");
  std::vector<std::string_view> out;
  while (most < 0 || std::ssize(out) < most) {
    const std::size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    if (at == std::string_view::npos) break;
    out.push_back(from_right ? text.substr(at + separator->size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + separator->size());
  }
  out.push_back(text);
  if (from_right) std::ranges::reverse(out);
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    auto size = static_cast<std::size_t>(std::max(c.size, 1));
    const bool ends = (c.value >= 10 && c.value <= 13) || (c.value >= 0x1C && c.value <= 0x1E) ||
                      c.value == 0x85 || c.value == 0x2028 || c.value == 0x2029;
    if (c.value == '\r' && text.substr(at + 1).starts_with('\n')) size = 2;
    if (ends) out.push_back(text.substr(begin, at - begin));
    at += size;
    if (ends) begin = at;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with,
                     std::int64_t most, std::int64_t room) {
  std::string out;
  std::int64_t done = 0;
  const auto append = [&](std::string_view bytes) {
    if (std::ssize(out) + std::ssize(bytes) > room) bad("replace() makes a text that is too long");
    out += bytes;
  };
  if (old.empty()) {  // between all characters
    each_character(text, [&](char32_t, std::string_view bytes) {
      if (most < 0 || done++ < most) append(with);
      append(bytes);
    });
    if (most < 0 || done < most) append(with);
    return out;
  }
  while (most < 0 || done < most) {
    const std::size_t at = text.find(old);
    if (at == std::string_view::npos) break;
    append(text.substr(0, at));
    append(with);
    text.remove_prefix(at + old.size());
    ++done;
  }
  append(text);
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  each_character(text, [&](char32_t, std::string_view bytes) { out.push_back(bytes); });
  return out;
}

}  // namespace tessera::jinja
