#pragma once
/// Requests to stop, from the keyboard or a job manager.

#include <atomic>

namespace tessera {

/// From now on SIGINT, SIGTERM and SIGUSR1 set the flag that is returned; a second one ends the
/// process at once, with the exit code 128 + its number. What was saved stays intact.
const std::atomic<bool>& catch_stop_signals();

}  // namespace tessera
