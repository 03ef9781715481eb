#include "tessera/machines/find_machine.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/base/error.h"
#include "tessera/machines/machine_file.h"

namespace tessera {

std::vector<std::string> machine_names() {
  std::vector<std::string> out;
  for (const NamedMachine& named : named_machines()) out.push_back(named.name);
  return out;
}

Machine find_machine(const std::string& name_or_path) {
  for (const NamedMachine& named : named_machines()) {
    if (named.name == name_or_path) return named.machine;
  }
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(name_or_path, failure);
  require(status.type() != std::filesystem::file_type::none, "machine file '", name_or_path,
          "' cannot be accessed: ", failure.message(), "; check its permissions and links");
  require(std::filesystem::is_regular_file(status), "machine '", name_or_path,
          "' is neither a known machine nor a file; known are ", join(machine_names()),
          "; `tessera doctor --calibrate FILE` writes a file for this machine");
  std::ifstream file(name_or_path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  require(file.good(), "machine file '", name_or_path, "' cannot be read; check its permissions");
  return parse_machine_file(content.str(), name_or_path);
}

}  // namespace tessera
