#pragma once
/// Ranks of one process, on threads.

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tessera::backend {

/// Counts the ranks that run.
class Running {
 public:
  explicit Running(int n) : count_(n) {}
  void one_ended() {
    const std::scoped_lock lock(mutex_);
    --count_;
    changed_.notify_all();
  }
  void stop_seen() {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  /// True when all have ended; false where some still run `grace` after the first was stopped.
  bool wait(std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0 || stopped_; });
    return changed_.wait_for(lock, grace, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_;
  bool stopped_ = false;
};

}  // namespace tessera::backend
