#include "tessera/machines/find_machine.h"

#include "tessera/base/error.h"

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
  require(false, "machine '", name_or_path, "' is neither a machine that has a name (",
          join(machine_names()), ") nor a machine file");
  return {};
}

}  // namespace tessera
