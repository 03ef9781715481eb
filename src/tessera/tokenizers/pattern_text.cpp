#include "tessera/tokenizers/pattern_text.h"

#include <utility>

#include "tessera/base/text.h"
#include "tessera/tokenizers/reference_unicode.h"

namespace tessera::tokenizer {

namespace {

// Each within brackets.
constexpr std::string_view kBlanks =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNoBlanks =
    R"(\x{0}-\x{8}\x{E}-\x{1F}!-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF})"
    R"(\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
/// What the reference's \w has beside letters, marks, digits, letter numbers and connectors.
constexpr std::string_view kMoreWords =
    R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169})"
    R"(\x{1F170}-\x{1F189})";
constexpr std::string_view kHexadecimal = "0-9a-fA-F";

constexpr std::string_view kCategoryNames[] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

std::string hexadecimal(char32_t c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (; c != 0; c >>= 4) out.insert(out.begin(), kDigits[c & 15]);
  return out;
}

/// "\p{L}", and what the engine's tables, which are older, lack of it.
std::string category_set(std::string_view name) {
  std::string out = text("\\p{", name, "}");
  for (const NewerCategory& newer : newer_categories()) {
    if (!starts_with(kCategoryNames[static_cast<std::size_t>(newer.category)], name)) continue;
    out += text("\\x{", hexadecimal(newer.first), "}");
    if (newer.last > newer.first) out += text("-\\x{", hexadecimal(newer.last), "}");
  }
  return out;
}

/// "L" or "Lu" of "\p{L}", which begins `pattern`; empty: something else.
std::string_view category_name(std::string_view pattern) {
  if (pattern.size() < 5 || pattern[2] != '{') return {};
  const std::size_t end = pattern.find('}');
  if (end == pattern.npos || end > 5) return {};
  const std::string_view name = pattern.substr(3, end - 3);
  for (const std::string_view known : kCategoryNames) {
    if (known == name || (name.size() == 1 && known[0] == name[0])) return name;
  }
  return {};
}

/// The set of an escape, and whether it is what the set lacks.
struct EscapeSet {
  std::string_view set;
  bool negated = false;
};

EscapeSet set_of(char escape, std::string_view words) {
  switch (escape) {
    case 's': return {kBlanks, false};
    case 'S': return {kBlanks, true};
    case 'w': return {words, false};
    case 'W': return {words, true};
    case 'h': return {kHexadecimal, false};
    case 'H': return {kHexadecimal, true};
    default: return {};
  }
}

}  // namespace

std::string pcre2_pattern(std::string_view pattern, const JsonPart& part) {
  const std::string words = text(category_set("L"), category_set("M"), category_set("Nd"),
                                 category_set("Nl"), category_set("Pc"), kMoreWords);
  std::string out;
  int brackets = 0;
  bool at_edge = false;  // directly behind a bracket within brackets, which is left out
  const auto refuse = [&](const char* what) {
    part.bad("pattern '", pattern.substr(0, 200), "' has ", what,
             " within brackets, which this program does not have; write it without that");
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    const bool edge = std::exchange(at_edge, false);
    if (c != '\\' || next == '\0') {
      if (brackets > 0 && c == '[' && next == ':') {  // [:alpha:]
        const std::size_t end = pattern.find(":]", i + 2);
        if (end == pattern.npos) refuse("[:");
        out += pattern.substr(i, end + 2 - i);
        i = end + 1;
      } else if (brackets > 0 && c == '[') {  // a set within a set is part of it: [a[bc]] is [abc]
        if (next == '^') refuse("[^");
        if (out.back() == '-') refuse("a range to a set");
        at_edge = true;
        ++brackets;
      } else if (brackets > 1 && c == ']') {
        at_edge = true;
        --brackets;
      } else if (brackets > 0 && c == '&' && next == '&') {
        refuse("&&");
      } else if (brackets > 0 && c == '-' && (edge || (brackets > 1 && next == ']'))) {
        out += "\\-";
      } else {
        if (c == '[') ++brackets;
        if (c == ']' && brackets > 0) --brackets;
        out += c;
      }
      continue;
    }
    const char escape = pattern[++i];
    const std::string_view category = escape == 'p' || (escape == 'P' && brackets == 0)
                                          ? category_name(pattern.substr(i - 1))
                                          : std::string_view();
    if (!category.empty()) {
      const std::string set = category_set(category);
      out += brackets > 0 ? set : text(escape == 'P' ? "[^" : "[", set, "]");
      i += category.size() + 2;
      continue;
    }
    const EscapeSet set = set_of(escape, words);
    if (set.set.empty()) {
      out += c;
      out += escape;
    } else if (brackets == 0) {
      out += set.negated ? "[^" : "[";
      out += set.set;
      out += ']';
    } else if (!set.negated) {
      out += set.set;
    } else if (escape == 'S') {
      out += kNoBlanks;
    } else {
      part.bad("pattern '", pattern.substr(0, 200), "' has \\", escape,
               " within brackets, which this program does not have; write it without that");
    }
  }
  return out;
}

}  // namespace tessera::tokenizer
