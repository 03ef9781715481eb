#include "tessera/data/answer_scores.h"

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

bool is_ascii_mark(char32_t c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
         (c >= 0x7B && c <= 0x7E);
}

/// White space of Python's str.split.
bool is_python_blank(char32_t c) {
  return kind_of(c) == CharacterKind::Blank || (c >= 0x1C && c <= 0x1F);
}

/// \w of Python's re: letters and numbers. Marks of ASCII, the low line too, are gone by then.
bool is_python_word(char32_t c) {
  const CharacterKind kind = kind_of(c);
  return kind == CharacterKind::Letter || kind == CharacterKind::Number || c == U'_';
}

bool is_article(std::u32string_view word) {
  return word == U"a" || word == U"an" || word == U"the";
}

/// A blank in place of each a, an and the between characters that are of no word.
std::u32string without_articles(const std::u32string& text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_python_word(text[end])) ++end;
    const std::u32string_view word = std::u32string_view(text).substr(at, end - at);
    if (is_article(word)) {
      out += U' ';
    } else {
      out += word;
    }
    if (end < text.size()) out += text[end++];
    at = end;
  }
  return out;
}

std::vector<std::string> words_of_answer(std::string_view answer) {
  const std::string utf8 = replaced_utf8(answer);
  std::u32string kept;
  for (std::size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    at += static_cast<std::size_t>(c.size);
    for (const char32_t lower : lower_case(c.value)) {
      if (!is_ascii_mark(lower)) kept += lower;
    }
  }
  std::vector<std::string> out;
  bool within = false;
  for (const char32_t c : without_articles(kept)) {
    const bool blank = is_python_blank(c);
    if (!blank && !within) out.emplace_back();
    if (!blank) append_utf8(out.back(), c);
    within = !blank;
  }
  return out;
}

}  // namespace

std::string normalized_answer(std::string_view answer) {
  return join(words_of_answer(answer), " ");
}

double exact_match(std::string_view prediction, std::string_view answer) {
  return words_of_answer(prediction) == words_of_answer(answer) ? 1 : 0;
}

double answer_f1(std::string_view prediction, std::string_view answer) {
  const std::vector<std::string> predicted = words_of_answer(prediction),
                                 right = words_of_answer(answer);
  if (predicted.empty() || right.empty()) return predicted == right ? 1 : 0;
  std::map<std::string_view, std::int64_t> left;
  for (const std::string& word : right) ++left[word];
  std::int64_t same = 0;
  for (const std::string& word : predicted) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++same;
  }
  return 2.0 * static_cast<double>(same) / static_cast<double>(predicted.size() + right.size());
}

AnswerScores answer_scores(std::span<const std::string> predictions,
                           std::span<const std::vector<std::string>> answers) {
  require(predictions.size() == answers.size(), "there are predictions for ", predictions.size(),
          " questions, but ", answers.size(), " questions; give as many of both");
  AnswerScores out;
  if (predictions.empty()) return out;
  static const std::vector<std::string> kNone = {""};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    double exact = 0, f1 = 0;
    for (const std::string& answer : answers[i].empty() ? kNone : answers[i]) {
      exact = std::max(exact, exact_match(predictions[i], answer));
      f1 = std::max(f1, answer_f1(predictions[i], answer));
    }
    out.exact_match += exact;
    out.f1 += f1;
  }
  const double questions = static_cast<double>(predictions.size());
  out.exact_match *= 100 / questions;
  out.f1 *= 100 / questions;
  return out;
}

}  // namespace tessera
