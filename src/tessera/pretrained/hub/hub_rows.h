#pragma once
/// Where the rows of a hub's tensor lie in one of our parameters.

#include <cstdint>
#include <vector>

#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

/// Rows that lie together in both.
struct HubRowRun {
  std::int64_t ours = 0, theirs = 0, count = 0;
};

/// All rows of a tensor of which theirs has so many, in the order of ours. `rows` must be
/// hub_row_count.
std::vector<HubRowRun> hub_row_runs(HubRows which, const ModelConfig& config, std::int64_t rows);

/// How many rows their tensor has; `rows` where that does not follow from the heads.
std::int64_t hub_row_count(HubRows which, const ModelConfig& config, std::int64_t rows);

}  // namespace tessera
