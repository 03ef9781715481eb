#pragma once
/// What devices of a pipeline hold while its pieces run.

#include <vector>

#include "tessera/hlo/start_order.h"
#include "tessera/pjrt/compiled.h"
#include "tessera/plan/compiled_bytes.h"

namespace tessera {

/// A piece, and what its compiler says of it.
struct PieceMemory {
  const hlo::Module* module = nullptr;
  pjrt::CompiledMemory memory;
};

/// The fullest moment of each stage's devices. At every start a device has what the run finds there
/// (states, batch, numbers of micro-batches), what pieces have left for later ones, and what the
/// piece itself takes; the last two as run_stages hands them on. `stages`: by stage and piece.
/// `pinned_host`: values that should lie on the host do.
std::vector<StageBytes> stage_bytes(const std::vector<hlo::Start>& starts,
                                    const std::vector<std::vector<PieceMemory>>& stages,
                                    bool pinned_host);

}  // namespace tessera
