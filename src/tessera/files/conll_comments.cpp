#include "tessera/files/conll_comments.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera {

std::vector<std::string_view> conll_columns(std::string_view line) {
  const std::string_view between = line.find('\t') == line.npos ? " " : "\t";
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(between, at), line.size());
    if (end > at) out.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

ConllLines::ConllLines(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string_view line = trim(bytes.substr(at, end - at));
    at = end + 1;
    if (line.empty() || line.front() == '#' || line.starts_with("-DOCSTART-")) continue;
    const std::vector<std::string_view> columns = conll_columns(line);
    tabs_ = tabs_ || line.find('\t') != line.npos;
    counts_.insert(columns.size());
    tags_.insert(trim(columns.back()));
  }
}

bool ConllLines::is_comment(std::string_view text, bool within, const std::string& path,
                            std::int64_t line) const {
  if (text.front() != '#' || counts_.empty()) return false;
  if (tabs_ && text.find('\t') == text.npos) return true;
  const std::vector<std::string_view> columns = conll_columns(text);
  const bool as_words = counts_.contains(columns.size());
  if (!as_words && !within) return true;
  const bool alone = trim(columns.front()) == "#";
  if (!alone || columns.size() == 1 || (as_words && tags_.contains(trim(columns.back()))))
    return false;
  fail(Fault::Data, "'", path, "' line ", line, " begins with # and may be a comment or the word ",
       "#: ",
       as_words
           ? tessera::text("its last column, '", printable(columns.back().substr(0, 60)),
                           "', is not the tag of any other word")
           : tessera::text("it has ", columns.size(), " columns, and words have ", this->columns()),
       "; remove the line if it is a comment, else give # a tag that other words have");
}

}  // namespace tessera
