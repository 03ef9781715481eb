#pragma once
/// Whether the machines have the memory that a run is planned with.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/config/config.h"
#include "tessera/device/device.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// What a rank will take of the main memory of its machine, and what is free there.
struct RankMemory {
  std::string machine;
  std::int64_t wanted_bytes = 0, free_bytes = 0;  // free: 0: the system does not say
  /// Of what is wanted: bytes that it has in common with ranks of the same `base`.
  std::int64_t base_bytes = 0;
  std::string base = {};
  friend bool operator==(const RankMemory&, const RankMemory&) = default;
};

/// The machine whose ranks want most beyond what is free there.
struct Shortage {
  std::string machine;
  int ranks = 0;
  std::int64_t wanted_bytes = 0, free_bytes = 0;
  std::int64_t base_bytes = 0;  // of what is wanted: in common
};
/// `ranks` is 0 where there is enough everywhere.
Shortage shortage_of(const std::vector<RankMemory>& ranks);

/// What a rank with that plan takes of main memory, beside the program itself.
std::int64_t main_memory_bytes(const RunConfig& config, const Plan& plan);

/// On rank 0: what there is too little of, and what would make the run fit; empty where it fits.
/// Every rank calls it, before it allocates, with its own plan. world == nullptr: there is one
/// rank.
std::string short_of_memory(const RunConfig& config, const Plan& plan, Device& device,
                            Communicator* world);

}  // namespace tessera
