#pragma once
/// Where the tables of the reference differ from those of base/unicode.h. Written by
/// tools/reference_unicode.py, which asks both.

#include <span>

#include "tessera/base/unicode.h"
#include "tessera/tokenizers/characters.h"

namespace tessera::tokenizer {

/// Code points of which the reference says the opposite.
struct TraitFlip {
  char32_t first = 0, last = 0;
  Traits trait = 0;
};
std::span<const TraitFlip> trait_flips();

/// Code points whose lower case is another one: that of `first` is `to`, and so on.
struct LowerRange {
  char32_t first = 0, last = 0, to = 0;
};
std::span<const LowerRange> lower_ranges();

/// Code points that its normal forms do not know.
std::span<const CodePointRange> unknown_ranges();

/// Code points that are in a category for its patterns, and not assigned in Unicode 14.
struct NewerCategory {
  char32_t first = 0, last = 0;
  Category category = Category::Cn;
};
std::span<const NewerCategory> newer_categories();

}  // namespace tessera::tokenizer
