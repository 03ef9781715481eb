#pragma once
/// Packs weights once per step into the layouts that a device's products read fastest.

#include <functional>
#include <optional>
#include <vector>

#include "tessera/passes/partition.h"

namespace tessera {

/// The layout in which the device wants operand `operand` of a call that runs `uses` times a step;
/// nullopt: as it is.
using WantedLayout =
    std::function<std::optional<Layout>(const OpCall& call, int operand, std::int64_t uses)>;

/// In, out: regions in Form::Local. Every operand that is a state, read in Forward or Backward, and
/// wanted in another layout is replaced by a `pack` of it: in Begin where there are micro-batches
/// (packed once, read in each), else before its first use. One pack per state and layout.
std::vector<Region> pack(std::vector<Region> regions, const WantedLayout& wanted);

}  // namespace tessera
