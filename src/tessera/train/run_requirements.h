#pragma once
/// What a run takes, over all its ranks.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct RunRequirements {
  std::int64_t peak_bytes = 0, lower_bound_bytes = 0;  // of the arena
  double flops = 0;                                    // of a training step
  std::map<std::string, std::int64_t> sent;            // bytes per training step, by axes
  std::int64_t host_bytes = 0;                         // of the pool on the host
  std::int64_t both_bytes = 0;                         // of arena and pool together
  double recomputed_flops = 0;                         // of flops: of what backward computes again

  std::int64_t sent_bytes() const;  // along all axes
  /// What the model asks for, which is what MFU counts.
  double model_flops() const { return flops - recomputed_flops; }
  friend bool operator==(const RunRequirements&, const RunRequirements&) = default;
};

RunRequirements requirements_of(const Plan& plan);

/// Of all ranks: bytes of each pool are those of the fullest, what is sent is that of the rank that
/// sends most, the first of those that are alike; FLOPs are those of all ranks together.
RunRequirements over_all_ranks(const std::vector<RunRequirements>& ranks);

/// Those over all ranks, on rank 0; the others get their own. Every rank calls it, with its own plan.
/// world == nullptr: there is one rank.
RunRequirements requirements_of_all(const Plan& plan, Communicator* world);

std::string to_text(const RunRequirements& facts);
RunRequirements parse_requirements(const std::string& line);

}  // namespace tessera
