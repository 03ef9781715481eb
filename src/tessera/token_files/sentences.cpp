#include "tessera/token_files/sentences.h"

#include <algorithm>
#include <array>
#include <string>

namespace tessera {

namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";
constexpr std::string_view kEnds = ".?!";

// Without their last period, in small letters. Those of the second list may end a sentence too.
constexpr std::array kNeverLast = {
    "mr",  "mrs",  "ms",  "messrs", "dr",  "prof", "rev", "gen",    "col",  "capt", "lt",   "sgt",
    "maj", "cmdr", "adm", "gov",    "sen", "rep",  "hon", "pres",   "st",   "ste",  "mt",   "ft",
    "fig", "figs", "eq",  "eqs",    "sec", "ch",   "vol", "vols",   "pp",   "ed",   "eds",  "al",
    "cf",  "viz",  "vs",  "v",      "e.g", "i.e",  "ca",  "approx", "dept", "univ", "assn", "bros",
    "mme", "mlle", "jan", "feb",    "mar", "apr",  "aug", "sept",   "sep",  "oct",  "nov",  "dec"};
constexpr std::array kMayBeLast = {"inc", "ltd", "corp", "co",   "jr",  "sr",  "etc", "ave", "blvd",
                                   "rd",  "a.m", "p.m",  "ph.d", "m.d", "b.a", "m.a", "esq"};
// What begins a sentence far more often than it follows a name.
constexpr std::array kBeginners = {
    "The",  "A",     "An",    "He",      "She", "It",  "They", "We",    "You",  "I",  "This",
    "That", "These", "Those", "There",   "In",  "On",  "At",   "But",   "And",  "If", "When",
    "As",   "For",   "After", "However", "His", "Her", "Its",  "Their", "What", "Why"};

template <typename List>
bool is_in(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool letter(char c) { return is_capital(c) || is_small(c); }
bool digit(char c) { return c >= '0' && c <= '9'; }
/// A byte of a character beyond ASCII: it may begin a sentence.
bool is_foreign(char c) { return static_cast<unsigned char>(c) >= 0x80; }

/// How many bytes of a closing quote or bracket are at `at`; 0: none.
std::size_t closing_at(std::string_view text, std::size_t at) {
  if (at < text.size() && std::string_view("\"')]}").find(text[at]) != std::string_view::npos)
    return 1;
  for (const std::string_view sign : {"\u201d", "\u2019", "\u00bb"}) {
    if (text.substr(at).starts_with(sign)) return sign.size();
  }
  return 0;
}

/// How many bytes of an opening quote or bracket are at `at`; 0: none.
std::size_t opening_at(std::string_view text, std::size_t at) {
  if (at < text.size() && std::string_view("\"'([{").find(text[at]) != std::string_view::npos)
    return 1;
  for (const std::string_view sign : {"\u201c", "\u2018", "\u00ab"}) {
    if (text.substr(at).starts_with(sign)) return sign.size();
  }
  return 0;
}

/// The word that ends before `end`: letters, digits and periods between them.
std::string_view word_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && (letter(text[begin - 1]) || digit(text[begin - 1]) ||
                       text[begin - 1] == '.' || is_foreign(text[begin - 1])))
    --begin;
  return text.substr(begin, end - begin);
}

/// Letters from `at` on.
std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && letter(text[end])) ++end;
  return text.substr(at, end - at);
}

/// Single letters with periods between, as U.S or J.
bool is_initials(std::string_view word) {
  if (word.empty() || word.size() % 2 == 0) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (i % 2 == 0 ? !letter(word[i]) : word[i] != '.') return false;
  }
  return word != "I";  // "it was I."
}

/// Whether a sentence ends with the run of signs [from, to), where `next` is behind the blanks.
bool ends_sentence(std::string_view text, std::size_t from, std::size_t to, std::size_t next) {
  const std::string_view signs = text.substr(from, to - from);
  if (signs.find_first_of("?!") != std::string_view::npos) return true;
  while (const std::size_t bytes = opening_at(text, next)) next += bytes;
  if (next == text.size()) return true;
  const char first = text[next];
  if (signs.size() > 1) return is_capital(first) || is_foreign(first);
  if (!is_capital(first) && !digit(first) && !is_foreign(first)) return false;
  const std::string_view before = word_before(text, from);
  std::string small(before);
  for (char& c : small) c = is_capital(c) ? static_cast<char>(c - 'A' + 'a') : c;
  const bool begins = is_in(kBeginners, word_at(text, next));
  if (small == "no" || small == "nos") return !digit(first);  // No. 5, but: she said no.
  if (is_in(kNeverLast, small)) return false;
  if (is_in(kMayBeLast, small) || is_initials(before)) return begins;
  return true;
}

}  // namespace

std::vector<std::string_view> sentences_of(std::string_view text, bool keep_newlines) {
  std::vector<std::string_view> out;
  const auto behind_blanks = [&](std::size_t at) {
    return std::min(text.find_first_not_of(kBlanks, at), text.size());
  };
  std::size_t begin = behind_blanks(0);
  for (std::size_t at = begin; at < text.size();) {
    const std::size_t from = text.find_first_of(kEnds, at);
    if (from == std::string_view::npos) break;
    std::size_t to = std::min(text.find_first_not_of(kEnds, from), text.size());
    std::size_t end = to;
    while (const std::size_t bytes = closing_at(text, end)) end += bytes;
    at = end;
    if (end == text.size() || !is_blank(text[end])) continue;
    const std::size_t next = behind_blanks(end);
    if (next == text.size() || !ends_sentence(text, from, to, next)) continue;
    out.push_back(text.substr(begin, (keep_newlines ? next : end) - begin));
    begin = at = next;
  }
  if (begin < text.size()) {
    std::size_t end = text.size();
    while (!keep_newlines && end > begin && is_blank(text[end - 1])) --end;
    out.push_back(text.substr(begin, end - begin));
  }
  return out;
}

}  // namespace tessera
