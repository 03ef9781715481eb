#pragma once
/// Reads the little XML that drawings are written in.

#include <regex>
#include <string>
#include <vector>

namespace tessera {

/// Tags that are closed in order, attributes in quotes, no bare & or <; the names of all elements.
/// Empty where it is not so.
inline std::vector<std::string> elements_of(const std::string& xml) {
  std::vector<std::string> out, open;
  static const std::regex kTag(
      R"(<(/?)([a-z]+)((?: [a-zA-Z:-]+="[^"<>]*")*)(/?)>|&(amp|lt|gt|quot);)");
  std::string rest = xml;
  std::smatch found;
  while (std::regex_search(rest, found, kTag)) {
    const std::string before = found.prefix();
    if (before.find_first_of("<&") != std::string::npos) return {};
    if (found[2].matched) {
      if (found[1] == "/") {
        if (open.empty() || open.back() != found[2]) return {};
        open.pop_back();
      } else {
        out.push_back(found[2]);
        if (found[4] != "/") open.push_back(found[2]);
      }
    }
    rest = found.suffix();
    if (open.empty() && rest != "\n") return {};
  }
  return open.empty() ? out : std::vector<std::string>{};
}

}  // namespace tessera
