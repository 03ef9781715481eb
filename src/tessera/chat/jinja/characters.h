#pragma once
/// What Python's methods of strings do with UTF-8.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::jinja {

/// str.isspace of one character.
bool is_space(char32_t c);
/// str.isprintable of one character.
bool is_printed(char32_t c);
bool is_ascii(std::string_view text);

enum class Ends { Both, Left, Right };
/// Without white space at its ends, or without the characters of `chars`.
std::string_view stripped(std::string_view text, Ends ends,
                          std::optional<std::string_view> chars = std::nullopt);

/// Errors: Problem: a character whose case depends on others, or becomes several characters.
std::string lower(std::string_view text);
std::string upper(std::string_view text);
/// The first character is a capital, the others are small.
std::string capitalized(std::string_view text);
/// str.title: a capital begins each run of letters.
std::string titled(std::string_view text);

/// str.split and rsplit; no separator: at runs of white space. `most`: below 0 any number.
std::vector<std::string_view> split_text(std::string_view text,
                                         std::optional<std::string_view> separator,
                                         std::int64_t most, bool from_right);
/// str.splitlines without the ends of lines.
std::vector<std::string_view> lines_of(std::string_view text);
/// str.replace; `most`: below 0 any number. Errors: Problem: more than `room` bytes.
std::string replaced(std::string_view text, std::string_view old, std::string_view with,
                     std::int64_t most, std::int64_t room);
/// & < > ' " as HTML has them.
std::string escaped(std::string_view text);

/// The characters, each as UTF-8.
std::vector<std::string_view> characters_of(std::string_view text);

}  // namespace tessera::jinja
