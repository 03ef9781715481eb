#pragma once
/// What calls, steps, and the actions and messages of a pipeline take, as a machine prices them.

#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// Of a run of one call: a kernel's arithmetic or its bytes, whichever takes longer; of a
/// collective what a rank sends, over the slowest link of its axes, and of a copy between the
/// memory of the device and that of the host its bytes over a link of Level::Host, as if nothing
/// ran beside it. Messages between stages and waits cost nothing here.
double price(const Call& call, const Mesh& mesh, const Machine& machine);

/// Seconds of a step on one rank: the price of every call, as often as it runs, one after another.
/// It grows with all that a plan does twice or carries about, so it compares plans of one step.
double step_seconds(const ProgramPlan& program, const Mesh& mesh, const Machine& machine = {});

/// Seconds. `stages`: the program on one rank of every stage. Messages take their bytes over a link
/// between cores, and are received and sent as plans do: receives are posted ahead, and as many
/// sends are under way as there are places for what is sent.
PlayOptions prices_of(const std::vector<const ProgramPlan*>& stages, const Pipeline& pipeline,
                      const Mesh& mesh, const Machine& machine = {});

}  // namespace tessera
