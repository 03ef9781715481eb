#include "tessera/tokenizers/characters.h"

#include <algorithm>

#include "tessera/base/utf8.h"
#include "tessera/tokenizers/reference_unicode.h"

namespace tessera::tokenizer {

namespace {

constexpr char32_t kCodePoints = 0x110000;

bool is_category(char32_t c, std::initializer_list<Category> of) {
  const Category is = category_of(c);
  return std::ranges::find(of, is) != of.end();
}

bool is_mark(char32_t c) { return is_category(c, {Category::Mn, Category::Mc, Category::Me}); }

/// Letters in circles and squares: symbols that belong to words.
bool is_circled(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_unknown(char32_t c) {
  return std::ranges::any_of(unknown_ranges(), [&](const CodePointRange& range) {
    return c >= range.first && c <= range.last;
  });
}

/// By code point.
struct TraitTable {
  std::vector<Traits> traits;
  std::array<Traits, 128> ascii{};
  TraitTable();
};

Traits compute_traits(char32_t c) {
  const Category category = category_of(c);
  const bool letter = category >= Category::Lu && category <= Category::Lo,
             number = category >= Category::Nd && category <= Category::No, mark = is_mark(c);
  const auto when = [](bool is, Traits trait) { return is ? trait : Traits{0}; };
  const bool ascii_mark = (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) ||
                          (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
  Traits out = 0;
  out |= when(letter, kLetter);
  out |= when(number, kNumber | kNumeric);
  out |= when(kind_of(c) == CharacterKind::Blank, kBlank);
  const bool blank_control = c == '\t' || c == '\n' || c == '\r';
  out |=
      when(!blank_control && is_category(c, {Category::Cc, Category::Cf, Category::Co}), kControl);
  out |= when(ascii_mark || (category >= Category::Pc && category <= Category::Po), kPunctuation);
  out |= when(category == Category::Mn, kAccent);
  out |= when(mark, kMark);
  out |= when(letter || mark || category == Category::Nd || category == Category::Nl ||
                  category == Category::Pc || is_circled(c) || c == 0x200C || c == 0x200D,
              kWord);
  out |= when(!decomposes(c, true) && combining_class(c) == 0, kInert);
  out |= when(lower_case(c) != std::u32string{c}, kCased);
  return out;
}

TraitTable::TraitTable() : traits(kCodePoints) {
  for (char32_t c = 0; c < kCodePoints; ++c) traits[c] = compute_traits(c);
  for (const TraitFlip& flip : trait_flips()) {
    for (char32_t c = flip.first; c <= flip.last; ++c) traits[c] ^= flip.trait;
  }
  for (const LowerRange& range : lower_ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c) traits[c] |= kCased;
  }
  for (const CodePointRange& range : unknown_ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c) traits[c] |= kInert;
  }
  std::copy_n(traits.begin(), ascii.size(), ascii.begin());
}

/// Made when it is first asked for: 2 MB are filled in some ms.
const TraitTable& trait_table() {
  static const TraitTable table;
  return table;
}

}  // namespace

Traits traits_of(char32_t c) {
  const std::vector<Traits>& traits = trait_table().traits;
  return c < traits.size() ? traits[c] : Traits{0};
}

const std::array<Traits, 128>& ascii_traits() { return trait_table().ascii; }

void append_lower(std::u32string& out, char32_t c) {
  if ((traits_of(c) & kCased) == 0) {
    out += c;
    return;
  }
  for (const LowerRange& range : lower_ranges()) {
    if (c >= range.first && c <= range.last) {
      out += range.to + (c - range.first);
      return;
    }
  }
  out += lower_case(c);
}

void append_lower(std::string& out, char32_t c) {
  if ((traits_of(c) & kCased) == 0) return append_utf8(out, c);
  std::u32string lower;
  append_lower(lower, c);
  for (const char32_t each : lower) append_utf8(out, each);
}

void normalize_form(std::u32string& text, NormalForm form) {
  if (text.empty()) return;
  const bool composes = form == NormalForm::C || form == NormalForm::Kc;
  const auto inert = [](char32_t c) { return (traits_of(c) & kInert) != 0; };
  if (!composes && std::ranges::all_of(text, inert)) return;
  // What is unknown is as any character that nothing combines with: parts between are on their own.
  std::u32string out, part;
  const auto flush = [&] {
    normalize(part, form);
    out += part;
    part.clear();
  };
  for (const char32_t c : text) {
    if (c >= 0x80 && is_unknown(c)) {
      flush();
      out += c;
    } else {
      part += c;
    }
  }
  flush();
  text = std::move(out);
}

void normalize_form(std::string& text, NormalForm form) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return;
  std::u32string wide;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    wide += c.size == 0 ? U'\uFFFD' : c.value;
    at += c.size == 0 ? 1 : static_cast<std::size_t>(c.size);
  }
  normalize_form(wide, form);
  text.clear();
  for (const char32_t c : wide) append_utf8(text, c);
}

}  // namespace tessera::tokenizer
