#pragma once
/// Which lines of a CoNLL file are comments, as "# text = Al met Bo" of CoNLL-U.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The columns of a line: between tabs where it has one, else between blanks; empty ones are left
/// out.
std::vector<std::string_view> conll_columns(std::string_view line);

/// What the lines of a file that do not begin with # look like.
class ConllLines {
 public:
  explicit ConllLines(std::string_view bytes);

  /// Whether a line that is not empty is a comment. It begins with #, and has no tab where words
  /// have some, or stands before a sentence and has another number of columns than words have.
  /// `within`: it stands within a sentence. Errors: Fault::Data, with `path` and `line`: its first
  /// column is # alone, and it may be either: it has as many columns as words have and a last one
  /// that is no tag of a word, or stands within a sentence.
  bool is_comment(std::string_view text, bool within, const std::string& path,
                  std::int64_t line) const;
  /// Most columns of a line.
  std::size_t columns() const { return counts_.empty() ? 0 : *counts_.rbegin(); }

 private:
  bool tabs_ = false;
  std::set<std::size_t> counts_;  // of columns
  std::set<std::string_view> tags_;
};

}  // namespace tessera
