#pragma once
/// Pack: copies weights, once per step, into the layout that the device's products read fastest.

#include <functional>
#include <optional>

#include "tessera/passes/program.h"

namespace tessera {

/// The layout in which the device wants operand `operand` of a call that runs `uses` times a step;
/// nullopt: as it is.
using WantedLayout =
    std::function<std::optional<Layout>(const OpCall& call, int operand, std::int64_t uses)>;

/// In, out: regions in Form::Local. Every operand that is a state, read in the loop, and wanted in
/// another layout is replaced by a `pack` of it: in Begin where there are micro-batches
/// (packed once, read in each), else before its first use. One pack per state and layout.
///
/// What is copied of a state from the host is packed too, each copy behind it: so that the same
/// product computes it, and the bits are the same. That is done in every micro-batch.
Program pack(Program program, const WantedLayout& wanted);

}  // namespace tessera
