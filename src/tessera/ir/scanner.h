#pragma once
/// Reads words from the text form of graphs and knows its position; for parse.cpp.

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/words.h"
#include "tessera/ir/graph.h"

namespace tessera {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Skips blanks and a comment ("# ..."), not the line's end.
  void blanks();
  /// Skips blanks, comments and empty lines.
  void lines();
  bool at_end() const { return at_ == text_.size(); }
  /// The next byte; a line end at the end of the text.
  char peek() const { return at_end() ? '\n' : text_[at_]; }

  // All of the following skip blanks first; `what` completes "expected ...".
  bool accept(char c);
  void expect(char c, std::string_view what);
  /// Up to a blank, a line end or one of ,(){}="# outside of []; empty if one of them comes first.
  std::string_view word();
  void keyword(std::string_view keyword, std::string_view what);
  /// The index of the word in `names`.
  template <std::size_t N>
  int one_of(const std::array<std::string_view, N>& names, std::string_view what);
  /// With its quotes.
  std::string_view quoted_word(std::string_view what);
  /// A word, or what is in quotes.
  std::string path(std::string_view what);
  template <typename T>
  T number(std::string_view what);
  NodeId node_id();   // "%12"
  ValueId value();    // "%12" or "%12.1"
  ValueIds values();  // "(%1, %2)"
  std::string_view rest_of_line();
  void end_of_line();

  std::size_t position() const { return at_; }
  void back_to(std::size_t position) { at_ = position; }
  [[noreturn]] void expected(std::string_view what) const;
  [[noreturn]] void wrong(std::size_t position, std::string_view message) const;
  /// Runs `read`, which knows nothing of lines: its errors get the position.
  template <typename Read>
  auto placed(std::size_t position, const Read& read) const {
    try {
      return read();
    } catch (const Error& error) {
      wrong(position, error.what());
    }
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

template <std::size_t N>
int Scanner::one_of(const std::array<std::string_view, N>& names, std::string_view what) {
  blanks();
  const std::size_t start = at_;
  if (const std::optional<int> found = find_word<int>(names, word())) return *found;
  at_ = start;
  expected(what);
}

template <typename T>
T Scanner::number(std::string_view what) {
  blanks();
  T value{};
  const char* end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
  if (error != std::errc()) expected(what);
  at_ = static_cast<std::size_t>(stop - text_.data());
  return value;
}

}  // namespace tessera
