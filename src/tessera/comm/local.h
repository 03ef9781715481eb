#pragma once
/// Ranks as threads of this process.

#include <chrono>
#include <functional>
#include <string>

#include "tessera/comm/communicator.h"

namespace tessera {

struct LocalOptions {
  /// How long a rank waits in a call without a sign of life of a rank that works
  /// (Communicator::alive), before it reports who has not come and stops all.
  std::chrono::milliseconds deadline{60'000};
  /// Called once, with what happened, where a rank does not end within `deadline` of the others'
  /// stop: a thread that is stuck outside of comm cannot be ended from outside, so the program
  /// should tell and end itself. Empty: the rank is waited for.
  std::function<void(const std::string& report)> stuck;
};

/// Calls body(world) on n threads, one per rank, and returns when all have ended: no thread is left
/// behind. The first failure stops all ranks that wait or call, and is rethrown, with the rank and
/// its step below it.
///
/// Waiting ranks spin, then yield, then nap: ranks may outnumber cores.
void run_ranks(int n, const std::function<void(Communicator& world)>& body,
               const LocalOptions& options = {});

}  // namespace tessera
