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

std::string near_paths(std::string pattern, const std::vector<std::string>& paths) {
  std::erase(pattern, '*');
  const std::vector<std::string> near = nearest(pattern, paths);
  if (!near.empty()) return text("nearest ", near.size() == 1 ? "is " : "are ", join(near));
  if (paths.empty()) return "there are none";
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> first(
      paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, paths.size())));
  return text("there are ", join(first), paths.size() > kShown ? ", ..." : "");
}

}  // namespace tessera
