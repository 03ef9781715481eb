#include "tessera/ir/strategy.h"

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

}  // namespace tessera
