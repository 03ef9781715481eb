#include "tessera/train/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/comm/share_text.h"
#include "tessera/comm/work_alone.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/memory_search.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

std::string host_name() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this machine";
}

/// Changes when the machine starts, and no two have the same.
std::string boot_id() {
  std::string out;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), out);
  return out;
}

/// What makes a device take so many bytes of main memory at most, in words.
std::string remedy(const RunConfig& config, Device& device, std::int64_t bytes) {
  MemorySearch search(config, device, bytes);
  const std::optional<MemoryCandidate> found = search.cheapest();
  return found ? text("; it fits with ", flags_text(search.choice(*found)))
               : "; no recomputing or micro-batch size that was tried fits: use fewer devices per "
                 "machine, or offload to a file, with --remote-device nvme and "
                 "--offload-folder";
}

}  // namespace

std::int64_t main_memory_bytes(const RunConfig& config, const Plan& plan) {
  return plan.peak_bytes() + host_use(config, plan.host_bytes()).memory +
         save_copy_bytes(config, plan);
}

Shortage shortage_of(const std::vector<RankMemory>& ranks) {
  std::map<std::string, Shortage> machines;
  std::set<std::pair<std::string, std::string>> bases;  // that were counted
  for (const RankMemory& rank : ranks) {
    Shortage& machine = machines[rank.machine];
    machine.machine = rank.machine;
    machine.free_bytes = std::max(machine.free_bytes, rank.free_bytes);
    machine.wanted_bytes += rank.wanted_bytes;
    if (!bases.emplace(rank.machine, rank.base).second)
      machine.wanted_bytes -= rank.base_bytes;
    else
      machine.base_bytes += rank.base_bytes;
    ++machine.ranks;
  }
  Shortage out;
  for (const auto& [name, machine] : machines) {
    if (machine.free_bytes > 0 && machine.wanted_bytes - machine.free_bytes >
                                      std::max<std::int64_t>(out.wanted_bytes - out.free_bytes, 0))
      out = machine;
  }
  return out;
}

std::string short_of_memory(const RunConfig& config, const Plan& plan, Device& device,
                            Communicator* world) {
  const nlohmann::json mine = {{"machine", text(host_name(), ' ', boot_id())},
                               {"wanted", main_memory_bytes(config, plan)},
                               {"free", free_memory_bytes()},
                               {"base_bytes", plan.base_bytes},
                               {"base", text(getpid(), ' ', plan.base_key())}};
  const std::vector<std::string> lines = gather_texts(world, mine.dump(), "free memory of ranks");
  if (world != nullptr && world->rank() != 0) return "";
  std::vector<RankMemory> ranks;
  for (const std::string& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    ranks.push_back({json.at("machine"), json.at("wanted"), json.at("free"), json.at("base_bytes"),
                     json.at("base")});
  }
  const Shortage shortage = shortage_of(ranks);
  if (shortage.ranks == 0) return "";
  const std::int64_t share = (shortage.free_bytes - shortage.base_bytes) / shortage.ranks +
                             plan.base_bytes - save_copy_bytes(config, plan);
  std::string what_helps;
  work_alone(world, [&] {
    try {
      what_helps = remedy(config, device, share);
    } catch (const Error&) {  // of another way to run than this one, which is not in question
    }
  });
  return text(shortage.ranks == 1 ? text("a device of this run takes ")
                                  : text(shortage.ranks, " devices of this run take "),
              bytes_text(shortage.wanted_bytes), " of the memory of ",
              shortage.machine.substr(0, shortage.machine.find(' ')), ", where ",
              bytes_text(shortage.free_bytes), " are free: the system may swap, or end the run",
              what_helps);
}

}  // namespace tessera
