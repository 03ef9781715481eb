#include "tessera/launch/take_machine.h"

#include "tessera/launch/agreement.h"
#include "tessera/machines/find_machine.h"
#include "tessera/machines/machine_file.h"

namespace tessera {

void take_machine(RunConfig& config, Communicator* launched, Problems& problems) {
  if (config.machine.empty()) {
    if (config.given.contains("machine"))
      problems.add("machine is empty; name a machine or a machine file, or leave it out");
    return;
  }
  constexpr const char *kMachine = "machine", *kProblem = "problem";
  const auto found = from_leader(launched, [&]() -> std::map<std::string, std::string> {
    try {
      return {{kMachine, machine_file_text(find_machine(config.machine))}};
    } catch (const Error& error) {
      return {{kProblem, error.what()}};  // is told with all that is wrong
    }
  });
  if (found.contains(kProblem)) return problems.add(found.at(kProblem), {"machine"});
  config.parallel.machine = parse_machine_file(found.at(kMachine), config.machine);
}

}  // namespace tessera
