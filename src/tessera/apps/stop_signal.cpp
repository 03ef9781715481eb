#include "tessera/apps/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "tessera/apps/command.h"

namespace tessera {

namespace {

// A signal handler is handed nothing, so these flags are global.
std::atomic<bool> stop_requested = false, has_launcher = false, ended_by_launcher = false,
                  nothing_to_save = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void request_stop(int signal, siginfo_t* info, void*) {
  if (signal == SIGTERM && has_launcher && info->si_pid == getppid()) {
    ended_by_launcher = true;
    return;
  }
  if (nothing_to_save) {
    constexpr std::string_view kSaid =
        "stopped on request before the first step; there was nothing to save\n";
    [[maybe_unused]] const ssize_t put = write(STDERR_FILENO, kSaid.data(), kSaid.size());
    _exit(kExitStopped);
  }
  if (stop_requested.exchange(true)) _exit(128 + signal);
}

}  // namespace

const std::atomic<bool>& catch_stop_signals() {
  struct sigaction action = {};
  action.sa_sigaction = request_stop;
  action.sa_flags = SA_RESTART | SA_SIGINFO;  // a save that is under way finishes
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  struct sigaction before = {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  return stop_requested;
}

NothingToSave::NothingToSave() { nothing_to_save = true; }

void NothingToSave::end() { nothing_to_save = false; }

const std::atomic<bool>& catch_launchers_end() {
  has_launcher = true;
  catch_stop_signals();
  return ended_by_launcher;
}

}  // namespace tessera
