#pragma once
/// What the actions and messages of a pipeline take, as a machine prices them.

#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// Of a run of one call: a kernel's arithmetic or its bytes, whichever takes longer; of a
/// collective what a rank sends, over the slowest link of its axes, as if nothing ran beside it.
/// Messages between stages and waits cost nothing here.
double price(const Call& call, const Mesh& mesh, const Machine& machine);

/// Seconds. `stages`: the program on one rank of every stage. Messages take their bytes over a link
/// between cores, and are received and sent as plans do: receives are posted ahead, and as many
/// sends are under way as there are places for what is sent.
PlayOptions prices_of(const std::vector<const ProgramPlan*>& stages, const Pipeline& pipeline,
                      const Mesh& mesh, const Machine& machine = {});

}  // namespace tessera
