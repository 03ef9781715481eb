#pragma once
/// A machine's prices of calls, and of steps in which nothing overlaps.

#include <cstdint>
#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// Seconds of one call if nothing ran beside it: of a kernel Machine::kernel_seconds; of a
/// collective what a rank sends, at the price of its axes together, and the latency of its steps
/// (as Redistributor's moves: log2 n, twice that for all_reduce, one for a permute); of a copy
/// between the memory of the device and that of the host its bytes over the link there. Messages
/// between stages and waits cost nothing here.
double price(const Call& call, const Mesh& mesh, const Machine& machine);

/// Seconds of a step on one rank: the price of every call, as often as it runs, one after another.
/// It grows with all that a plan does twice or carries about, so it compares plans of one step.
double step_seconds(const ProgramPlan& program, const Mesh& mesh, const Machine& machine = {});

/// Seconds of an edge's message between two stages of so many ranks, all of which send one.
double message_seconds(const EdgeBytes& edge, const Pipeline& pipeline, std::int64_t ranks,
                       const Machine& machine);

}  // namespace tessera
