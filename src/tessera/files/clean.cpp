#include "tessera/files/clean.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Takes the next line off the front of `rest`.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

std::string one_space(std::string_view line, std::int64_t& runs);

/// "1Sm3:10 Speak" -> chapter "1Sm3", body "Speak". False where the line begins otherwise.
bool split_verse(std::string_view line, std::string_view& chapter, std::string_view& body);

}  // namespace

void CleaningLog::add(std::string_view what, std::int64_t times) {
  if (times == 0) return;
  const auto same =
      std::find_if(list_.begin(), list_.end(), [&](const Cleaning& c) { return c.what == what; });
  if (same == list_.end()) {
    list_.push_back({std::string(what), times});
  } else {
    same->times += times;
  }
}

std::string clean_text(std::string_view utf8, CleaningLog& log) {
  std::string out;
  out.reserve(utf8.size() + 1);
  std::int64_t controls = 0, trailing = 0, empty_lines = 0;
  bool after_empty = true;  // true at the start: a text does not begin with an empty line
  while (!utf8.empty()) {
    std::string line(take_line(utf8));
    const auto control = [](char c) {
      return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
    };
    controls += static_cast<std::int64_t>(std::erase_if(line, control));
    const std::size_t kept = line.find_last_not_of(" \t") + 1;        // npos + 1 is 0
    const bool tab = kept > 0 && line.find('\t', kept) != line.npos;  // of a pair without a target
    trailing += kept + (tab ? 1 : 0) < line.size();
    line.resize(kept);
    if (tab) line += '\t';
    const bool empty = line.empty();
    if (empty && after_empty) {
      ++empty_lines;
    } else {
      out += line;
      out += '\n';
    }
    after_empty = empty;
  }
  if (out.size() >= 2 && out.ends_with("\n\n")) {
    out.pop_back();
    ++empty_lines;
  }
  log.add("control characters removed", controls);
  log.add("lines with blanks at the end cut", trailing);
  log.add("empty lines beyond one in a row removed", empty_lines);
  return out;
}

std::string clean_verses(std::string_view lines, CleaningLog& log) {
  std::string out, previous_chapter;
  out.reserve(lines.size());
  std::int64_t verses = 0, chapters = 0, runs = 0;
  while (!lines.empty()) {
    const std::string_view line = take_line(lines);
    if (trim(line).empty()) continue;
    std::string_view chapter, body;
    if (!split_verse(line, chapter, body)) {
      fail(Fault::Data, "verse ", verses + 1, " has no reference like Ge1:1: '", line.substr(0, 60),
           "'; the package's program has changed; prepare the text from a file instead");
    }
    if (chapter != previous_chapter) {
      if (!out.empty()) out += '\n';
      previous_chapter = chapter;
      ++chapters;
    }
    ++verses;
    out += one_space(trim(body), runs);
    out += '\n';
  }
  log.add("verse references removed", verses);
  log.add("chapters set apart by an empty line", chapters);
  log.add("runs of spaces made one", runs);
  return out;
}

namespace {

std::string one_space(std::string_view line, std::int64_t& runs) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool repeats = line[i] == ' ' && i > 0 && line[i - 1] == ' ';
    if (!repeats) out += line[i];
    runs += repeats && line[i + 1] != ' ';  // the line is trimmed: a run does not end it
  }
  return out;
}

bool split_verse(std::string_view line, std::string_view& chapter, std::string_view& body) {
  std::size_t at = 0;
  const auto skip = [&](auto test) {
    const std::size_t before = at;
    while (at < line.size() && test(line[at])) ++at;
    return at > before;
  };
  skip(is_digit);  // of "1Sm"
  if (!skip(is_letter) || !skip(is_digit)) return false;
  chapter = line.substr(0, at);
  if (at == line.size() || line[at++] != ':' || !skip(is_digit)) return false;
  if (at == line.size() || line[at] != ' ') return false;
  body = line.substr(at + 1);
  return true;
}

}  // namespace

}  // namespace tessera
