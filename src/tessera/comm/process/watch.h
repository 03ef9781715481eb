#pragma once
/// Deaths of other processes of this host, noticed as they happen.

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace tessera::process {

/// A thread that sleeps until one of some processes ends.
class Watch {
 public:
  struct Pid {
    int rank;
    int pid;
  };
  /// `on_death` is called on the thread, once per death. A process that the system does not let us
  /// watch is left out.
  Watch(const std::vector<Pid>& processes, std::function<void(int rank)> on_death);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void run();

  struct Watched {
    int rank, file;
  };
  std::vector<Watched> watched_;
  std::function<void(int)> on_death_;
  int stop_ = -1;  // an event that ends the thread
  std::thread thread_;
};

}  // namespace tessera::process
