#pragma once
/// Ranks as processes, started by mpirun or srun.

#include <chrono>
#include <functional>
#include <string>

#include "tessera/base/error.h"
#include "tessera/comm/communicator.h"

namespace tessera {

struct MpiOptions {
  /// How long a rank waits in a call before it reports who has not come and stops all. Longer than
  /// anything that ranks do not do together (one writes a checkpoint while the others wait).
  std::chrono::milliseconds deadline{60'000};
  /// Called on one rank, once, with what happened, before a world ends that cannot end by itself: a
  /// rank is stuck outside of comm, or one died while the others compute. The launcher then ends
  /// the processes, so this is the last chance to tell. May be called from another thread.
  std::function<void(const std::string& report)> stuck;
  /// True where this process was sent SIGTERM by what started it, as all ranks are after one has
  /// died. Asked while a rank waits; needed where ranks are on several hosts. May be empty.
  std::function<bool()> told_to_end;
};

/// Another rank tells what happened: end with the exit code of fault(), and say nothing.
class FailedElsewhere : public Error {
 public:
  using Error::Error;
};

/// Calls body(world) on this process's rank of MPI_COMM_WORLD and returns when all ranks have come
/// to their end. Once per process, on one thread, which is the one that calls comm.
///
/// The first failure stops all ranks that wait or call. Then it is rethrown: on one rank as it is,
/// with the rank and its step below it; on the others as FailedElsewhere with the same fault, so
/// that a failure is told once, and every process ends with the same code.
///
/// Errors:  built without MPI; the message says how to get it.
void run_mpi_rank(const std::function<void(Communicator& world)>& body,
                  const MpiOptions& options = {});

/// True where this program was built with MPI.
bool has_mpi();

/// True where what started this process is an MPI launcher (mpirun, srun with several tasks), as
/// its variables say. `variable` looks one up: null where it is not set.
bool mpi_launched(const std::function<const char*(const char* name)>& variable);

}  // namespace tessera
