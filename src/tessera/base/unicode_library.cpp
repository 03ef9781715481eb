/// What utf8proc knows of characters (the package libutf8proc-dev).

#include <utf8proc.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

constexpr char32_t kLastCodePoint = 0x10FFFF;

/// The decomposition of one character, all the way.
void append_decomposed(std::u32string& out, char32_t c, bool compatible) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  utf8proc_int32_t parts[64];
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts,
                                                         std::ssize(parts), options, &boundary);
  check(count <= std::ssize(parts), code_point_text(c), " decomposes into ", count, " characters");
  if (count < 0) {  // a surrogate, or beyond the last code point
    out += c;
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) out += static_cast<char32_t>(parts[i]);
}

/// Marks behind a character in the order of their classes.
void order_marks(std::u32string& text) {
  for (auto at = text.begin(); at != text.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(at, text.end(), [](char32_t c) { return combining_class(c) == 0; });
    std::stable_sort(
        at, end, [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

}  // namespace

std::string_view unicode_version() { return utf8proc_unicode_version(); }

Category category_of(char32_t c) {
  if (c > kLastCodePoint) return Category::Cn;
  return static_cast<Category>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
}

int combining_class(char32_t c) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

bool decomposes(char32_t c, bool compatible) {
  std::u32string parts;
  append_decomposed(parts, c, compatible);
  return parts.size() != 1 || parts[0] != c;
}

std::u32string lower_case(char32_t c) {
  if (c == 0x130) return {U'i', char32_t{0x307}};  // the one that SpecialCasing.txt has
  return {static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)))};
}

char32_t upper_case(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

void normalize(std::u32string& text, NormalForm form) {
  const bool compatible = form == NormalForm::Kc || form == NormalForm::Kd;
  std::u32string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char32_t c : text) append_decomposed(out, c, compatible);
  order_marks(out);
  if (form == NormalForm::C || form == NormalForm::Kc) {
    static_assert(sizeof(char32_t) == sizeof(utf8proc_int32_t));
    const utf8proc_ssize_t size = utf8proc_normalize_utf32(
        reinterpret_cast<utf8proc_int32_t*>(out.data()), std::ssize(out),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    check(size >= 0, "a text of ", out.size(), " characters is not composed: ", size);
    out.resize(static_cast<std::size_t>(size));
  }
  text = std::move(out);
}

std::size_t grapheme_size(std::string_view utf8) {
  CodePoint before = code_point_at(utf8, 0);
  if (before.size == 0) return 1;
  auto at = static_cast<std::size_t>(before.size);
  utf8proc_int32_t state = 0;
  while (at < utf8.size()) {
    const CodePoint next = code_point_at(utf8, at);
    if (next.size == 0 ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state))
      break;
    at += static_cast<std::size_t>(next.size);
    before = next;
  }
  return at;
}

}  // namespace tessera
