#pragma once
/// What Unicode says of characters: kinds, categories, lower case, normal forms, clusters.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

enum class CharacterKind { Letter, Number, Blank, Other };

/// Letter and Number are the categories L and N of Unicode 14, Blank is its property White_Space.
CharacterKind kind_of(char32_t code_point);

struct CodePointRange {
  char32_t first = 0, last = 0;  // both belong to it
};

/// In ascending order, without neighbours that touch.
std::span<const CodePointRange> letter_ranges();
std::span<const CodePointRange> number_ranges();

/// General categories, in the order of the library that knows them.
enum class Category : std::uint8_t {
  Cn,  // not assigned
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co
};

/// The version of Unicode of all that is below, like "15.0.0". kind_of() is of Unicode 14.
std::string_view unicode_version();

Category category_of(char32_t code_point);
/// 0 for characters that no mark is moved over.
int combining_class(char32_t code_point);
/// A normal form without composition (D, or Kd with `compatible`) has other characters in its
/// place.
bool decomposes(char32_t code_point, bool compatible);
/// Its lower case, which may be two characters, without regard to those around it.
std::u32string lower_case(char32_t code_point);
/// Its capital, where that is one character; else itself or another one.
char32_t upper_case(char32_t code_point);

enum class NormalForm { C, D, Kc, Kd };
/// Unicode Standard Annex 15. Time: of the order of n log n.
void normalize(std::u32string& text, NormalForm form);

/// Bytes of the first extended grapheme cluster of a text in UTF-8 that is not empty (Unicode
/// Standard Annex 29); bytes that are not UTF-8 are one each.
std::size_t grapheme_size(std::string_view utf8);

}  // namespace tessera
