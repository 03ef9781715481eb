#include "text_setup.h"

#include "machine_line.h"
#include "tessera/base/text.h"
#include "tessera/ir/strategy_text.h"

namespace tessera {

TextSetup read_setup(const std::string& content) {
  TextSetup out;
  std::string strategy;
  for (const std::string& line : split(content, '\n')) {
    if (!line.starts_with("# ")) break;
    const std::string rest = line.substr(2), key = rest.substr(0, rest.find(' '));
    const std::string value = rest.substr(std::min(key.size() + 1, rest.size()));
    if (out.pass.empty()) {
      out.pass = rest.substr(0, rest.find(':'));
    } else if (key == "machine") {
      out.machine = parse_machine(value);
    } else if (key == "show") {
      const std::vector<std::string> regions = split(value, ' ');
      out.show.insert(regions.begin(), regions.end());
    } else {
      strategy += rest + "\n";
    }
  }
  out.strategy = parse_strategy(strategy);
  return out;
}

}  // namespace tessera
