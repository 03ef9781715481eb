#pragma once
/// Ranks as processes, started by mpirun, torchrun, srun, a script, or whatever says which rank
/// each is. They join by MPI or over TCP.

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "tessera/base/error.h"
#include "tessera/comm/communicator.h"
#include "tessera/comm/launched.h"

namespace tessera {

struct LaunchedOptions {
  /// How long a rank waits, for the others to come up, in a call, or for their end, without a sign
  /// of life of a rank that works (Communicator::alive), before it reports who has not come and
  /// stops all.
  std::chrono::milliseconds deadline{60'000};
  /// How long a rank waits for the others to come up, if not as long as `deadline`.
  std::optional<std::chrono::milliseconds> deadline_to_come_up;
  /// Called with the first failure, on one rank of all, before any process ends: what started them
  /// may end the rest at once, and lose words that come later. May be called from another thread
  /// (one rank died, and this one computes). Empty: the failure is rethrown there.
  std::function<void(const std::exception_ptr& failure)> report;
  /// True where this process was sent SIGTERM by what started it, as all ranks are after one has
  /// died. Asked while a rank waits; needed where ranks are on several hosts. May be empty.
  std::function<bool()> told_to_end;
  /// A request to stop, as a signal handler sets it: set on one rank, it is soon set on all. May be
  /// null.
  std::atomic<bool>* stop = nullptr;
  /// Called on another thread, with what happened, where the ranks do not come up or do not leave
  /// each other within the deadline, or a thread of this process does not end: the program should
  /// print it and end itself, for nobody else can. Empty: they are waited for.
  std::function<void(const std::string& report)> stuck;
};

/// A failure that LaunchedOptions::report was given, here or on another rank: end with the exit
/// code of fault(), and print nothing.
class Reported : public Error {
 public:
  using Error::Error;
};

/// A failure that every rank throws alike: reported as it is, without the rank on which it was
/// noticed.
class CommonError : public Error {
 public:
  using Error::Error;
};

/// Calls body(world) on this process's rank, or on each of its ranks, on a thread of its own, and
/// returns when all ranks of the run have come to their end. Once per process where MPI joins them.
/// `launched` says how it was started, and is not Alone.
///
/// The first failure stops all ranks that wait or call. It is reported once, with the rank and its
/// step below it; then every rank throws Reported with its fault, so that all end with one code.
///
/// Errors:  of MPI, built without it: the message says how to get it. Over TCP: the ranks do not
///          meet within the deadline; the message says which, and where they look for each other.
void run_launched(const Launched& launched, const std::function<void(Communicator& world)>& body,
                  const LaunchedOptions& options = {});

/// True where this program was built with MPI.
bool has_mpi();

}  // namespace tessera
