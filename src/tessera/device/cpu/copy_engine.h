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

/// One caller at a time. The thread ends with the engine.
class CopyEngine {
 public:
  /// `cores`: on which the thread may run.
  explicit CopyEngine(const cpu_set_t& cores) : cores_(cores) {}
  /// Finishes what was started.
  ~CopyEngine();
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  /// Makes the thread, and room for so many copies that were started and have not begun.
  /// Errors: Fault::Resource: the system gives no thread.
  void expect(std::size_t most);
  /// Its number, from 1 on; copies run in the order of their starts. Allocates nothing where no
  /// more of them wait than were expected.
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
  std::mutex mutex_;  // of what follows; `started_` is written by the caller alone
  std::condition_variable wanted_, done_;
  std::vector<Copy> waiting_;  // a ring: copy number n lies at n modulo its size
  std::uint64_t started_ = 0, begun_ = 0, finished_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera::cpu
