#pragma once
/// The trained model that a command finds: rank 0 reads it, and all ranks compile its programs.

#include <cstdint>
#include <functional>

#include "tessera/launch/ranks.h"

namespace tessera {

/// What rank 0 found, on every rank.
struct FoundRun {
  RunConfig recorded;      // complete
  RunConfig asked;         // of the command, on this machine and the launched ranks
  std::int64_t texts = 0;  // that programs write at a time
};

/// `find` is called on rank 0 alone. It gets what was asked on this machine, makes of it what
/// was recorded, and returns the number of texts. It raises the problems, which have its own.
/// Errors: of `find`, on every rank.
FoundRun find_run(Communicator* launched, const RanksCommand& command,
                  const std::function<std::int64_t(RunConfig& config, Problems& problems)>& find);

}  // namespace tessera
