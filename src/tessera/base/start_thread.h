#pragma once
/// Threads, and what is said where the system has no more.

#include <system_error>
#include <thread>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

/// Calls `start`, which starts a thread. Errors: Fault::Resource: the system refuses one more.
template <typename Start>
auto starting_thread(Start&& start) {
  try {
    return start();
  } catch (const std::system_error& error) {
    fail(Fault::Resource, "the system refused one more thread: ", error.code().message(),
         "; give fewer --threads or --devices, or raise the limit (ulimit -u, ulimit -v, the "
         "cgroup's pids.max)");
  }
}

/// Errors: Fault::Resource: the system refuses one more.
template <typename Body>
std::thread start_thread(Body&& body) {
  return starting_thread([&] { return std::thread(std::forward<Body>(body)); });
}

}  // namespace tessera
