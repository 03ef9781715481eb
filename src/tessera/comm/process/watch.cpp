#include "tessera/comm/process/watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "tessera/base/start_thread.h"

namespace tessera::process {

Watch::Watch(const std::vector<Pid>& processes, std::function<void(int)> on_death)
    : on_death_(std::move(on_death)) {
  for (const Pid& process : processes) {
    // A file that can be read once the process has ended, whoever collects its status.
    const long file = syscall(SYS_pidfd_open, process.pid, 0);
    if (file >= 0) watched_.push_back({process.rank, static_cast<int>(file)});
  }
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0 || watched_.empty()) return;
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = start_thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watch::~Watch() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    while (write(stop_, &one, sizeof(one)) < 0) {
    }
    thread_.join();
  }
  for (const Watched& one : watched_) close(one.file);
  if (stop_ >= 0) close(stop_);
}

void Watch::run() {
  std::vector<pollfd> files = {{stop_, POLLIN, 0}};
  for (const Watched& one : watched_) files.push_back({one.file, POLLIN, 0});
  for (;;) {
    if (poll(files.data(), files.size(), -1) < 0) continue;
    if (files[0].revents != 0) return;
    for (std::size_t i = 1; i < files.size(); ++i) {
      if (files[i].revents == 0) continue;
      files[i].fd = -1;  // told once
      on_death_(watched_[i - 1].rank);
    }
  }
}

}  // namespace tessera::process
