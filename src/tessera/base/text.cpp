#include "tessera/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tessera {

namespace {

template <typename T>
std::string shortest(T value) {
  if (value != value) return "nan";  // whatever its sign
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string text_of(std::initializer_list<TextPart> parts) {
  std::string out;
  for (const TextPart& part : parts) part.append_to(out);
  return out;
}

std::string number_text(std::int64_t value) { return shortest(value); }
std::string number_text(std::uint64_t value) { return shortest(value); }
std::string number_text(double value) { return shortest(value); }
std::string number_text(float value) { return shortest(value); }

std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i == line.size() || line[i] == separator) {
      out.emplace_back(line.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return out;
}

bool is_one_of(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split(words, ' ');
  return std::ranges::find(all, word) != all.end();
}

std::string_view trim(std::string_view line) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!line.empty() && blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && blank(line.back())) line.remove_suffix(1);
  return line;
}

bool starts_with(std::string_view line, std::string_view prefix) {
  return line.substr(0, prefix.size()) == prefix;
}

std::string grouped(std::int64_t value) {
  std::string digits = number_text(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  if (unit == 0) return text(bytes, " B");
  std::array<char, 40> buffer;
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, digits)
                       .ptr;
  return text(std::string_view(buffer.data(), static_cast<std::size_t>(end - buffer.data())), " ",
              kUnits[unit]);
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& known,
                                 int count) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& candidate : known) {
    const auto [shorter, longer] = std::minmax({name.size(), candidate.size()});
    const int limit = std::max(2, static_cast<int>(shorter / 2));
    const bool inside = name.size() >= 3 && candidate.find(name) != std::string::npos;
    const bool far =
        longer - shorter > static_cast<std::size_t>(limit);  // a long name is not compared in full
    const int distance = far ? limit + 1 : edit_distance(name, candidate);
    if (distance <= limit || inside)
      ranked.emplace_back(inside ? std::min(distance, limit) : distance, candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (const auto& [distance, candidate] : ranked) {
    if (static_cast<int>(out.size()) < count) out.push_back(candidate);
  }
  return out;
}

}  // namespace tessera
