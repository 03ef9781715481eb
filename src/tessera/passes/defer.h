#pragma once
/// Moves the end of a Forward region into the Backward region of its chunk, where both sides of one
/// value then are. For strips.cpp.

#include <optional>
#include <string>

#include "tessera/passes/program.h"

namespace tessera {

struct Deferred {
  Graph forward, backward;
  ValueId value;  // in `backward`, what it was in Forward
};

/// Forward and Backward of a chunk, given by their indices, where Backward computes a value that
/// Forward handed over as `slot`, from the product on that made it, and all that Forward makes of
/// it: the loss, and metrics. Forward hands over what that reads instead. A weight that is gathered
/// is read as Backward gathers it. Where the value lay on the host in between, it is not copied.
///
/// Nullopt where that would cost more than it saves, or change the order of messages: what is
/// computed of the value goes to another stage or to an earlier region, has products of its own
/// with small results, or reads something that is not far smaller and that Backward does not have.
///
/// In, out: regions in Form::Local, as partition makes them.
std::optional<Deferred> defer(const Program& program, int forward, int backward,
                              const std::string& slot);

/// True where the region reads slot `name`.
bool reads_slot(const Graph& region, const std::string& name);

}  // namespace tessera
