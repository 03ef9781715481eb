#pragma once
/// Threads of one CPU device: the caller and its helpers run slices of one call, then wait for each
/// other.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

namespace tessera::cpu {

class Pool {
 public:
  /// `threads` >= 1, the caller of run included. If first_core >= 0, threads are pinned to cores
  /// from that one on, counted among those on which the caller of this constructor may run: helpers
  /// now, the caller of run there (it stays pinned; threads that it makes afterwards inherit that).
  Pool(int threads, int first_core);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const;
  /// What run does first: for whoever touches memory before.
  void pin_caller() const;

  /// Calls task(0) ... task(count - 1), thread t taking t, t + threads, ...; returns when all are
  /// done. The first exception is rethrown. Waits spin, then yield: devices may outnumber cores.
  /// Helpers without work for some time sleep. One caller at a time, and not from inside a task.
  template <typename Task>
  void run(int count, const Task& task) {
    run_erased(
        count, [](const void* t, int i) { (*static_cast<const Task*>(t))(i); }, &task);
  }

  /// Splits [0, n) into one range per thread (multiples of `grain`, nearly equal) and calls
  /// task(begin, end).
  template <typename Task>
  void split(std::int64_t n, std::int64_t grain, const Task& task) {
    const std::int64_t chunks = (n + grain - 1) / grain,
                       parts = std::min<std::int64_t>(threads(), chunks);
    if (parts <= 1) {
      if (n > 0) task(std::int64_t{0}, n);
      return;
    }
    run(static_cast<int>(parts), [&](int i) {
      const std::int64_t begin = chunks * i / parts * grain,
                         end = std::min(n, chunks * (i + 1) / parts * grain);
      if (begin < end) task(begin, end);
    });
  }

 private:
  void run_erased(int count, void (*call)(const void*, int), const void* task);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::cpu
