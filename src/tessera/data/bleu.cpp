#include "tessera/data/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

bool is_digit_of_13a(char c) { return c >= '0' && c <= '9'; }
bool is_point_or_comma(char c) { return c == '.' || c == ','; }

/// What stands for itself whatever is beside it: of ASCII, all but letters, digits and ' , - .
bool stands_alone(char c) {
  return c >= ' ' && c <= '~' && !is_digit_of_13a(c) && !(c >= 'a' && c <= 'z') &&
         !(c >= 'A' && c <= 'Z') && c != '\'' && c != ',' && c != '-' && c != '.';
}

void replace_all(std::string& in, std::string_view from, std::string_view to);
/// Rewrites two neighbours wherever `match` takes them; from the left, each character once.
template <typename Match, typename Write>
std::string rewrite_pairs(const std::string& line, Match match, Write write);
/// White space in the sense of Python, by which sacreBLEU splits.
bool splits_words(char32_t c) {
  return kind_of(c) == CharacterKind::Blank || (c >= 0x1C && c <= 0x1F);
}

/// Without the white space at the end.
std::string_view cut_end(std::string_view line) {
  return line.substr(0, line.find_last_not_of(" \t\r\n\v\f") + 1);  // npos + 1 is 0
}

/// How often each run of `n` words is in a line; a run is joined by blanks, which no word has.
std::map<std::string, std::int64_t> runs_of(const std::vector<std::string>& words, std::size_t n) {
  std::map<std::string, std::int64_t> out;
  for (std::size_t i = 0; i + n <= words.size(); ++i)
    ++out[join(std::span(words).subspan(i, n), " ")];
  return out;
}

void finish(Bleu& bleu) {
  const auto hypothesis = static_cast<double>(bleu.words),
             reference = static_cast<double>(bleu.reference_words);
  if (bleu.words < bleu.reference_words)
    bleu.brevity_penalty = bleu.words == 0 ? 0 : std::exp(1 - reference / hypothesis);
  if (bleu.matches == decltype(bleu.matches){}) return;
  double smoothing = 1, sum_of_logs = 0;
  bool all = true;
  for (std::size_t n = 0; n < Bleu::kOrders; ++n) {
    const auto runs = static_cast<double>(bleu.runs[n]);
    if (bleu.runs[n] == 0) {
      all = false;
      break;
    }
    if (bleu.matches[n] == 0) smoothing *= 2;
    bleu.precisions[n] = bleu.matches[n] == 0 ? 100 / (smoothing * runs)
                                              : 100 * static_cast<double>(bleu.matches[n]) / runs;
    sum_of_logs += std::log(bleu.precisions[n]);
  }
  if (all)
    bleu.score = bleu.brevity_penalty * std::exp(sum_of_logs / static_cast<double>(Bleu::kOrders));
}

}  // namespace

std::vector<std::string> bleu_words(std::string_view given) {
  std::string line(given);
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  // One after the other, so that &amp;lt; becomes <.
  for (const auto& [from, to] : {std::pair("&quot;", "\""), std::pair("&amp;", "&"),
                                 std::pair("&lt;", "<"), std::pair("&gt;", ">")})
    replace_all(line, from, to);
  std::string apart = " ";
  for (const char c : line) apart += stands_alone(c) ? std::string{' ', c, ' '} : std::string{c};
  apart += ' ';
  apart = rewrite_pairs(
      apart, [](char a, char b) { return !is_digit_of_13a(a) && is_point_or_comma(b); },
      [](char a, char b) {
        return std::string{a, ' ', b, ' '};
      });
  apart = rewrite_pairs(
      apart, [](char a, char b) { return is_point_or_comma(a) && !is_digit_of_13a(b); },
      [](char a, char b) {
        return std::string{' ', a, ' ', b};
      });
  apart = rewrite_pairs(
      apart, [](char a, char b) { return is_digit_of_13a(a) && b == '-'; },
      [](char a, char b) {
        return std::string{a, ' ', b, ' '};
      });
  std::vector<std::string> out;
  bool inside = false;
  for (std::size_t at = 0; at < apart.size();) {
    const CodePoint c = code_point_at(apart, at);
    const auto size = static_cast<std::size_t>(std::max(c.size, 1));
    const bool blank = c.size > 0 && splits_words(c.value);
    if (!blank && !inside) out.emplace_back();
    if (!blank) out.back() += apart.substr(at, size);
    inside = !blank;
    at += size;
  }
  return out;
}

Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  require(hypotheses.size() == references.size(), "there are ", hypotheses.size(),
          " hypotheses but ", references.size(),
          " references; give one reference per hypothesis, in the same order");
  require(!hypotheses.empty(), "there is no hypothesis to score; give at least one");
  Bleu out;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::vector<std::string> words = bleu_words(cut_end(hypotheses[i])),
                                   reference = bleu_words(cut_end(references[i]));
    out.words += std::ssize(words);
    out.reference_words += std::ssize(reference);
    for (std::size_t n = 0; n < Bleu::kOrders; ++n) {
      const auto known = runs_of(reference, n + 1);
      for (const auto& [run, times] : runs_of(words, n + 1)) {
        out.runs[n] += times;
        const auto found = known.find(run);
        if (found != known.end()) out.matches[n] += std::min(times, found->second);
      }
    }
  }
  finish(out);
  return out;
}

std::string to_text(const Bleu& bleu) {
  std::vector<std::string> precisions;
  for (const double precision : bleu.precisions) precisions.push_back(format("%.1f", precision));
  const double ratio = bleu.reference_words == 0 ? 0
                                                 : static_cast<double>(bleu.words) /
                                                       static_cast<double>(bleu.reference_words);
  return text("BLEU = ", format("%.2f", bleu.score), " ", join(precisions, "/"),
              " (BP = ", format("%.3f", bleu.brevity_penalty), " ratio = ", format("%.3f", ratio),
              " hyp_len = ", bleu.words, " ref_len = ", bleu.reference_words, ")");
}

namespace {

void replace_all(std::string& in, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = in.find(from); found != std::string::npos; found = in.find(from, at)) {
    out += in.substr(at, found - at);
    out += to;
    at = found + from.size();
  }
  if (at > 0) in = out + in.substr(at);
}

template <typename Match, typename Write>
std::string rewrite_pairs(const std::string& line, Match match, Write write) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i + 1 < line.size() && match(line[i], line[i + 1])) {
      out += write(line[i], line[i + 1]);
      ++i;
    } else {
      out += line[i];
    }
  }
  return out;
}

}  // namespace

}  // namespace tessera
