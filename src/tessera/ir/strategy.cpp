#include "tessera/ir/strategy.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

bool matches(std::string_view pattern, std::string_view path) {
  // The last '*' is the only one that may have to take more characters.
  std::size_t p = 0, i = 0, star = std::string_view::npos, taken = 0;
  while (i < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = i;
    } else if (p < pattern.size() && pattern[p] == path[i]) {
      ++p, ++i;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

namespace {

/// How many characters of a path would have to be others, more or fewer for the pattern to match.
int distance(std::string_view pattern, std::string_view path) {
  std::vector<int> row(path.size() + 1);
  for (std::size_t j = 0; j <= path.size(); ++j) row[j] = static_cast<int>(j);
  for (const char c : pattern) {
    const bool any = c == '*';
    int diagonal = row[0];
    row[0] += any ? 0 : 1;
    for (std::size_t j = 1; j <= path.size(); ++j) {
      const int above = row[j];
      row[j] = any ? std::min(above, row[j - 1])
                   : std::min({above + 1, row[j - 1] + 1, diagonal + (c != path[j - 1])});
      diagonal = above;
    }
  }
  return row[path.size()];
}

/// The paths that are least far from a pattern, unless half of it would have to change.
std::vector<std::string> nearest_paths(std::string_view pattern,
                                       const std::vector<std::string>& paths) {
  const auto characters = std::ssize(pattern) - std::ranges::count(pattern, '*');
  int least = std::max(2, static_cast<int>(characters / 2));
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    const int far = distance(pattern, path);
    if (far < least) out.clear();
    least = std::min(least, far);
    if (far == least) out.push_back(path);
  }
  return out;
}

}  // namespace

std::string near_paths(const std::string& pattern, const std::vector<std::string>& paths) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> near = nearest(pattern, paths);
  if (near.empty()) near = nearest_paths(pattern, paths);
  near.resize(std::min(kShown, near.size()));
  if (!near.empty()) return text("nearest ", near.size() == 1 ? "is " : "are ", join(near));
  if (paths.empty()) return "there are none";
  const std::vector<std::string> first(
      paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, paths.size())));
  return text("there are ", join(first), paths.size() > kShown ? ", ..." : "");
}

}  // namespace tessera
