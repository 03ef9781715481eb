#include "tessera/launch/core_sets.h"

#include <cstddef>
#include <fstream>
#include <map>
#include <string>

#include "tessera/base/cores.h"
#include "tessera/base/text.h"

namespace tessera {

std::vector<cpu_set_t> usable_core_sets() {
  const cpu_set_t usable = usable_cores();
  std::vector<cpu_set_t> out;
  std::map<std::string, std::size_t> known;  // by the threads of a core, as the system lists them
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    std::ifstream file(text("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    std::string line;
    if (!std::getline(file, line)) line = text("alone ", cpu);
    const auto [core, fresh] = known.try_emplace(line, out.size());
    if (fresh) CPU_ZERO(&out.emplace_back());
    CPU_SET(cpu, &out[core->second]);
  }
  return out;
}

cpu_set_t cores_of_rank(std::span<const cpu_set_t> cores, int rank, int ranks) {
  const std::size_t each = cores.size() / static_cast<std::size_t>(ranks);
  cpu_set_t out;
  CPU_ZERO(&out);
  for (const cpu_set_t& core : cores.subspan(static_cast<std::size_t>(rank) * each, each))
    CPU_OR(&out, &out, &core);
  return out;
}

}  // namespace tessera
