#pragma once
/// Enumerations that are spelled as words: their words in the order of the enumerators.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

/// Nothing for another word.
template <typename Enum, std::size_t N>
std::optional<Enum> find_word(const std::array<std::string_view, N>& words, std::string_view word) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

/// Errors: another word, which is no `what`; the legal ones.
template <typename Enum, std::size_t N>
Enum parse_word(const std::array<std::string_view, N>& words, std::string_view word,
                std::string_view what) {
  const std::optional<Enum> found = find_word<Enum>(words, word);
  require(found.has_value(), "'", word, "' is no ", what, "; it can be ", join(words));
  return *found;
}

}  // namespace tessera
