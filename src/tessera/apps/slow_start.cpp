#include "tessera/apps/slow_start.h"

#include <utility>

#include "tessera/base/start_thread.h"

namespace tessera {

SlowStart::SlowStart(std::string line, Console& console, std::chrono::milliseconds after)
    : line_(std::move(line) + "\n"),
      console_(console),
      after_(after),
      waiting_(start_thread([this] { wait(); })) {}

SlowStart::~SlowStart() { end(); }

/// Allocates nothing: memory may be what the run has too little of.
void SlowStart::wait() noexcept {
  std::unique_lock lock(mutex_);
  if (!ended_.wait_for(lock, after_, [this] { return has_ended_; }))
    console_.err << line_ << std::flush;
}

void SlowStart::end() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  if (waiting_.joinable()) waiting_.join();
}

}  // namespace tessera
