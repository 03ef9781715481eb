#pragma once
/// Requests to stop, from the keyboard or a job manager, and a launcher's way to end its ranks.

#include <atomic>

namespace tessera {

/// From now on SIGINT, SIGTERM and SIGUSR1 set the flag that is returned; a second one ends the
/// process at once, with the exit code 128 + its number. What was saved stays intact.
const std::atomic<bool>& catch_stop_signals();

/// From now on SIGTERM from the process that started this one sets the flag that is returned, and
/// asks for nothing else: mpirun sends it when a rank has died, and SIGKILL a second later. There
/// is nothing to save then, nor time for it.
const std::atomic<bool>& catch_launchers_end();

}  // namespace tessera
