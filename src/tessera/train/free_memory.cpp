#include "tessera/train/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/comm/work_alone.h"
#include "tessera/train/gather_texts.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/memory_search.h"

namespace tessera {

namespace {

std::string machine_name() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this machine";
}

/// Offloading to main memory gains nothing here: only a file does.
std::int64_t wanted_bytes(const RunConfig& config, const Plan& plan) {
  return plan.peak_bytes() + (config.remote_device == kRemoteFile ? 0 : plan.host_bytes());
}

/// Flags with which a device takes so many bytes of main memory at most; empty: there are none.
std::string flags_that_fit(const RunConfig& config, Device& device, std::int64_t bytes) {
  RunConfig asked = config;
  for (const OffloadKind& kind : kOffloadKinds) {
    if (config.remote_device != kRemoteFile)
      asked.asked_for.emplace(kind.field, text("no ", kind.field));
  }
  MemorySearch search(asked, device, bytes);
  const std::optional<MemoryCandidate> found = search.cheapest();
  return found ? flags_text(search.choice(*found)) : "";
}

}  // namespace

Shortage shortage_of(const std::vector<RankMemory>& ranks) {
  std::map<std::string, Shortage> machines;
  for (const RankMemory& rank : ranks) {
    Shortage& machine = machines[rank.machine];
    machine.machine = rank.machine;
    machine.free_bytes = std::max(machine.free_bytes, rank.free_bytes);
    machine.wanted_bytes += rank.wanted_bytes;
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
  const nlohmann::json mine = {{"machine", machine_name()},
                               {"wanted", wanted_bytes(config, plan)},
                               {"free", free_memory_bytes()}};
  std::vector<std::string> lines = gather_texts(world, mine.dump());
  if (world != nullptr && world->rank() != 0) return "";
  if (lines.empty()) lines = {mine.dump()};
  std::vector<RankMemory> ranks;
  for (const std::string& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    ranks.push_back({json.at("machine"), json.at("wanted"), json.at("free")});
  }
  const Shortage shortage = shortage_of(ranks);
  if (shortage.ranks == 0) return "";
  std::string out =
      text(shortage.ranks == 1 ? "a device of this run takes "
                               : text(shortage.ranks, " devices of this run take "),
           bytes_text(shortage.wanted_bytes), " of the memory of ", shortage.machine, ", where ",
           bytes_text(shortage.free_bytes), " are free: the system may swap, or end the run; ");
  std::string flags;
  work_alone(world,
             [&] { flags = flags_that_fit(config, device, shortage.free_bytes / shortage.ranks); });
  return out +
         (flags.empty()
              ? text("no recomputing and no micro-batch size makes it fit: take fewer devices "
                     "on a machine, or --remote-device nvme with --offload-folder")
              : text("it fits with ", flags));
}

}  // namespace tessera
