#pragma once
/// The copy engine of a CPU device: a thread that copies from one memory to another beside kernels.

#include <sched.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::cpu {

/// The thread is made by the first start, and ends with the engine. One caller at a time.
class CopyEngine {
 public:
  /// `cores`: on which the thread may run.
  explicit CopyEngine(const cpu_set_t& cores) : cores_(cores) {}
  /// Finishes what was started.
  ~CopyEngine();
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  /// Its number, from 1 on; copies run in the order of their starts. Allocates nothing once as many
  /// copies have waited at a time.
  std::uint64_t start(void* to, const void* from, std::size_t bytes);
  void wait(std::uint64_t number);
  void wait_all() { wait(started_); }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  void run();

  const cpu_set_t cores_;
  std::uint64_t started_ = 0;
  std::mutex mutex_;  // of what follows
  std::condition_variable wanted_, done_;
  std::vector<Copy> waiting_;
  std::size_t next_ = 0;  // of those waiting
  std::uint64_t finished_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera::cpu
