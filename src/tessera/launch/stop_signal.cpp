#include "tessera/launch/stop_signal.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <string_view>

#include "tessera/base/start_thread.h"
#include "tessera/launch/exit_code.h"

namespace tessera {

namespace {

// A signal handler is handed nothing, so these flags are global.
std::atomic<bool> stop_requested = false, has_launcher = false, ended_by_launcher = false,
                  nothing_to_save = false, unfinished_texts = false;
std::atomic<bool> stops_in_order = false;  // else a request to stop ends the process
/// When a stop was first asked for, on a clock that never goes back; 0: not yet.
std::atomic<std::int64_t> asked = 0, asked_by_launcher = 0;
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// A file to remove, in memory that a handler may read at any time.
struct FileToRemove {
  std::array<char, PATH_MAX> path;
  dev_t device;
  ino_t number;
  std::atomic<bool> known;  // all of it
} file_to_remove = {};

/// It is known from now on, unless its name is too long or it is not there.
void remember_file(const std::string& path) {
  FileToRemove& file = file_to_remove;
  file.known = false;
  struct stat now = {};
  if (path.size() >= file.path.size() || stat(path.c_str(), &now) != 0) return;
  file.path[path.copy(file.path.data(), path.size())] = '\0';
  file.device = now.st_dev;
  file.number = now.st_ino;
  file.known = true;
}

void remove_file() {
  struct stat now = {};
  const FileToRemove& file = file_to_remove;
  if (file.known && stat(file.path.data(), &now) == 0 && now.st_dev == file.device &&
      now.st_ino == file.number)
    unlink(file.path.data());
}

void say(std::string_view what) {
  [[maybe_unused]] const ssize_t put = write(STDERR_FILENO, what.data(), what.size());
}

/// Notes a request; true where it is a second one.
bool asks_again(std::atomic<std::int64_t>& first) {
  timespec reading = {};
  clock_gettime(CLOCK_MONOTONIC, &reading);  // which a handler may call
  const std::int64_t now = reading.tv_sec * 1'000'000'000 + reading.tv_nsec;
  std::int64_t before = 0;
  return !first.compare_exchange_strong(before, now) &&
         now - before >= std::chrono::nanoseconds(kOneRequest).count();
}

extern "C" void request_stop(int signal, siginfo_t* info, void*) {
  const bool from_launcher = has_launcher && info->si_pid == getppid();
  if (signal == SIGTERM && from_launcher) {
    ended_by_launcher = true;
    return;
  }
  if (nothing_to_save) {
    say("stopped on request before the first step; nothing was saved\n");
    remove_file();
    _exit(kExitStopped);
  }
  if (unfinished_texts) {
    remove_file();
    say("ended on request: the texts written so far are discarded, and the file of --output is "
        "unchanged\n");
    _exit(128 + signal);
  }
  if (asks_again(from_launcher ? asked_by_launcher : asked) || !stops_in_order) _exit(128 + signal);
  stop_requested = true;
}

void catch_signals() {
  struct sigaction action = {};
  action.sa_sigaction = request_stop;
  action.sa_flags = SA_RESTART | SA_SIGINFO;  // a save that is under way finishes
  for (const int signal : stop_signals()) sigaction(signal, &action, nullptr);
}

}  // namespace

std::vector<int> stop_signals() {
  std::vector<int> out;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) out.push_back(signal);
  }
  return out;
}

std::atomic<bool>& catch_stop_signals() {
  stops_in_order = true;
  catch_signals();
  return stop_requested;
}

NothingToSave::NothingToSave() {
  file_to_remove.known = false;  // that of a run before
  nothing_to_save = true;
}

void NothingToSave::removes(const std::string& lock) { remember_file(lock); }

void NothingToSave::end() { nothing_to_save = false; }

UnfinishedTexts::UnfinishedTexts(const std::string& temporary) {
  remember_file(temporary);
  unfinished_texts = true;
  catch_signals();
}

UnfinishedTexts::~UnfinishedTexts() {
  unfinished_texts = false;
  file_to_remove.known = false;
}

const std::atomic<bool>& catch_launchers_end() {
  has_launcher = true;
  catch_signals();
  return ended_by_launcher;
}

StopByInput::StopByInput(std::atomic<bool>& stop) : end_(eventfd(0, EFD_CLOEXEC)) {
  if (end_ < 0) return;
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = start_thread([this, &stop] {
    std::array<pollfd, 2> files = {{{end_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    char byte = 0;
    while (poll(files.data(), files.size(), -1) >= 0 || errno == EINTR) {
      if (files[0].revents != 0) return;
      if (files[1].revents == 0) continue;
      if (read(STDIN_FILENO, &byte, 1) == 1) stop = true;
      files[1].fd = -1;  // once is enough
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StopByInput::~StopByInput() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    while (write(end_, &one, sizeof(one)) < 0) {
    }
    thread_.join();
  }
  if (end_ >= 0) close(end_);
}

}  // namespace tessera
