#include "fuzz/mutate.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

namespace tessera::fuzz {

namespace {

constexpr std::size_t kMaxLearnt = 512;

// Where numbers and nesting end, by themselves or by overflow.
constexpr std::string_view kExtremes[] = {"0",
                                          "1",
                                          "-1",
                                          "-0",
                                          "00",
                                          "8",
                                          "9",
                                          "64",
                                          "65",
                                          "255",
                                          "256",
                                          "65536",
                                          "2147483647",
                                          "2147483648",
                                          "-2147483648",
                                          "4294967295",
                                          "4294967296",
                                          "9007199254740993",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "-9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "99999999999999999999999999",
                                          "0.1",
                                          "1e308",
                                          "1e309",
                                          "-1e-400",
                                          "4.9e-324",
                                          "nan",
                                          "-nan",
                                          "inf",
                                          "-inf",
                                          "1e",
                                          "0x10",
                                          "+1",
                                          "1_0",
                                          ".5",
                                          "5."};
constexpr std::string_view kPieces[] = {"\"",
                                        "\\",
                                        "\\u0000",
                                        "\\ud800",
                                        "\\\"",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "\xEF\xBB\xBF",
                                        "\xC3\xA9",
                                        "\xED\xA0\x80",
                                        "\xF0\x90\x80\x80",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "(",
                                        ")",
                                        "[]",
                                        "{}",
                                        "()",
                                        "''",
                                        "\"\"\"",
                                        "'''",
                                        "#",
                                        ",",
                                        ":",
                                        "=",
                                        ".",
                                        "%",
                                        "@",
                                        "null",
                                        "true",
                                        "false",
                                        "[[",
                                        "]]",
                                        "-"};
constexpr char kBytes[] = {'\0', '\1', '\x7F', '\x80', '\xFF', '"', '\\', '\n', ' ', '0', '9', '-'};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '-';
}

/// The end of the bytes from `at` on that satisfy `is`.
template <typename Is>
std::size_t end_of(const std::string& text, std::size_t at, Is is) {
  while (at < text.size() && is(text[at])) ++at;
  return at;
}

}  // namespace

Mutator::Mutator(std::vector<std::string> corpus, std::uint64_t seed, std::size_t max_bytes)
    : random_(seed), max_bytes_(max_bytes), num_seeds_(corpus.size()), pool_(std::move(corpus)) {
  std::set<std::string> words;
  for (const std::string& text : pool_) {
    for (std::size_t at = 0, end = 0; at < text.size(); at = std::max(end, at + 1)) {
      end = end_of(text, at, is_word);
      if (end > at) words.insert(text.substr(at, end - at));
    }
  }
  words_.assign(words.begin(), words.end());
}

std::string Mutator::next() {
  std::string out = any();
  for (std::size_t changes = std::size_t{1} << below(4); changes > 0; --changes) change(out);
  if (out.size() > max_bytes_) out.resize(max_bytes_);
  return out;
}

void Mutator::learn(std::string input) {
  if (pool_.size() < num_seeds_ + kMaxLearnt) {
    pool_.push_back(std::move(input));
  } else {
    pool_[num_seeds_ + below(kMaxLearnt)] = std::move(input);
  }
}

void Mutator::change(std::string& input) {
  const std::size_t at = below(input.size() + 1);
  switch (below(4)) {
    case 0: return change_bytes(input, at);
    case 1: return change_range(input, at);
    case 2: return change_word(input, at);
    default: return change_line(input, at);
  }
}

void Mutator::change_bytes(std::string& input, std::size_t at) {
  const auto any_byte = [&] {
    return below(2) == 0 ? kBytes[below(std::size(kBytes))] : static_cast<char>(below(256));
  };
  const std::size_t kind = below(6);
  if (kind == 0 || input.empty()) {
    input.insert(at, 1, any_byte());
  } else if (kind == 1) {  // many of one: depth, or length
    input.insert(at, std::size_t{1} << below(11), at < input.size() ? input[at] : any_byte());
  } else if (kind == 2) {  // a binary number of 8 bytes
    const std::uint64_t number = (std::uint64_t{1} << below(64)) - below(3);
    at = std::min(at, input.size() - std::min<std::size_t>(input.size(), 8));
    if (below(2) == 0) at = 0;  // where formats have such numbers
    std::memcpy(input.data() + at, &number, std::min<std::size_t>(input.size() - at, 8));
  } else {
    char& byte = input[std::min(at, input.size() - 1)];
    byte = kind == 3   ? any_byte()
           : kind == 4 ? static_cast<char>(byte + 1 - 2 * static_cast<int>(below(2)))
                       : static_cast<char>(byte ^ (1 << below(8)));
  }
}

void Mutator::change_range(std::string& input, std::size_t at) {
  const std::size_t size = below(std::min<std::size_t>(input.size() - at, 1 + below(64)) + 1);
  const std::string range = input.substr(at, size);
  const std::string& other = any();
  const std::size_t from = below(other.size() + 1);
  switch (below(6)) {
    case 0: input.erase(at, size); break;
    case 1: input.insert(below(input.size() + 1), range); break;
    case 2: input.erase(at, size).insert(below(input.size() + 1), range); break;
    case 3: input.insert(at, other, from, below(64)); break;
    case 4:  // the front of one, the rest of another
      input.replace(at, std::string::npos, other, from, std::string::npos);
      break;
    default: input.resize(at);
  }
}

void Mutator::change_word(std::string& input, std::size_t at) {
  const auto pick = [&]() -> std::string_view {
    switch (below(words_.empty() ? 2 : 4)) {
      case 0: return kExtremes[below(std::size(kExtremes))];
      case 1: return kPieces[below(std::size(kPieces))];
      default: return words_[below(words_.size())];
    }
  };
  const std::size_t kind = below(4);
  if (kind == 0) {
    input.insert(at, pick());
    return;
  }
  // The next number, or the next word, becomes another.
  const bool number = kind == 1;
  const auto belongs = [&](char c) { return number ? is_digit(c) : is_word(c); };
  at = end_of(input, at, [&](char c) { return !belongs(c); });
  const std::size_t end = end_of(input, at, belongs);
  const std::string_view word =
      number && below(4) != 0 ? kExtremes[below(std::size(kExtremes))] : pick();
  if (at < end) input.replace(at, end - at, word);
}

void Mutator::change_line(std::string& input, std::size_t at) {
  const auto line_at = [](const std::string& text, std::size_t in) {
    const std::size_t begin = in == 0 ? 0 : text.rfind('\n', in - 1) + 1;  // npos + 1 is 0
    return std::pair(begin, std::min(text.find('\n', in), text.size() - 1) + 1 - begin);
  };
  if (input.empty()) return;
  const auto [begin, size] = line_at(input, std::min(at, input.size() - 1));
  const std::string line = input.substr(begin, size);
  switch (below(4)) {
    case 0: input.erase(begin, size); break;
    case 1: input.insert(begin, line); break;
    case 2: {
      input.erase(begin, size);
      input.insert(input.empty() ? 0 : line_at(input, below(input.size())).first, line);
      break;
    }
    default: {
      const std::string& other = any();
      if (other.empty()) return;
      const auto [from, length] = line_at(other, below(other.size()));
      input.insert(begin, other, from, length);
    }
  }
}

}  // namespace tessera::fuzz
