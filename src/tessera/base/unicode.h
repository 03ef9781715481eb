#pragma once
/// Kinds of Unicode characters: what splits a text into words asks for no more.

#include <span>

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

}  // namespace tessera
