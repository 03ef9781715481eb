#include "tessera/apps/stop_signal.h"

#include <signal.h>
#include <unistd.h>

namespace tessera {

namespace {

// A signal handler is handed nothing, so this one flag is global.
std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void request_stop(int signal) {
  if (stop_requested.exchange(true)) _exit(128 + signal);
}

}  // namespace

const std::atomic<bool>& catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;  // a save that is under way finishes
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  return stop_requested;
}

}  // namespace tessera
