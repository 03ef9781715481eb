#pragma once
/// Cleaning of plain text, and what was done to it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct Cleaning {
  std::string what;  // "verse references removed"
  std::int64_t times = 0;
  friend bool operator==(const Cleaning&, const Cleaning&) = default;
};

/// What was cleaned, each kind once, those that happened.
class CleaningLog {
 public:
  void add(std::string_view what, std::int64_t times);
  const std::vector<Cleaning>& list() const { return list_; }

 private:
  std::vector<Cleaning> list_;
};

/// Plain text as a language model should see it: no control characters but tabs and newlines, no
/// blanks at the ends of lines but a tab right behind a word (it separates a pair), at most one
/// empty line in a row, none at the start; one newline at the end.
std::string clean_text(std::string_view utf8, CleaningLog& log);

/// The King James text from the lines of the `bible` program ("Ge1:1 In the beginning ...") as
/// prose: one verse per line without its reference, an empty line before each new chapter; a model
/// then spends nothing on numbers. Errors: Fault::Data: a line without a reference.
std::string clean_verses(std::string_view lines, CleaningLog& log);

}  // namespace tessera
