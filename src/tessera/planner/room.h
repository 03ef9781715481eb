#pragma once
/// Whether there can be room for any plan, before plans are compared.

#include <cstdint>
#include <string>

#include "tessera/planner/planner.h"

namespace tessera {

/// Bytes of a device below which no plan is, and what takes them: "wte f32[96,64] takes on one of 2
/// devices while it is read".
struct LeastBytes {
  std::int64_t bytes = 0;
  std::string of;
};
/// Of the largest weight of a layer or of the vocabulary, cut by the most tensor parallel ranks, and
/// one of experts by the most that share these out: other ranks, and the host, only keep it while it
/// is not read.
LeastBytes least_of_weight(const PlanQuestion& question);
/// Of the parameters and the optimizer's states that cannot lie on the host, shared out among all
/// devices.
LeastBytes least_of_states(const PlanQuestion& question);

/// Errors: Fault::Usage: one of them is above what may be planned.
void require_room(const PlanQuestion& question);

/// "memory-cap 8GB (8000000000 bytes, of which memory-margin leaves 7600000000)"; of a machine:
/// "the memory of a device of lab (...)". There is a cap.
std::string cap_text(const PlanQuestion& question);

}  // namespace tessera
