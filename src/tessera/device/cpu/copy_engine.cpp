#include "tessera/device/cpu/copy_engine.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "tessera/base/error.h"

namespace tessera::cpu {

CopyEngine::~CopyEngine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wanted_.notify_one();
  thread_.join();
}

void CopyEngine::expect(std::size_t most) {
  {
    const std::lock_guard lock(mutex_);
    if (most > waiting_.size()) {
      std::vector<Copy> room(most);
      for (std::uint64_t n = begun_ + 1; n <= started_; ++n)
        room[n % room.size()] = waiting_[n % waiting_.size()];
      waiting_ = std::move(room);
    }
  }
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    fail(Fault::Resource,
         "cannot start the thread that copies between device and host: ", error.code().message(),
         "; raise the limit on processes or memory (ulimit -u, ulimit -v, cgroup), or run without "
         "offloading");
  }
}

std::uint64_t CopyEngine::start(void* to, const void* from, std::size_t bytes) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    full = started_ - begun_ == waiting_.size();
  }
  if (full) expect(std::max<std::size_t>(1, 2 * waiting_.size()));
  {
    const std::lock_guard lock(mutex_);
    ++started_;
    waiting_[started_ % waiting_.size()] = {to, from, bytes};
  }
  wanted_.notify_one();
  return started_;
}

void CopyEngine::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return finished_ >= number; });
}

void CopyEngine::run() {
  // A thread inherits the one core of its maker; a refusal costs only speed.
  pthread_setaffinity_np(pthread_self(), sizeof cores_, &cores_);
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return ends_ || begun_ < started_; });
    if (begun_ == started_) return;
    ++begun_;
    const Copy copy = waiting_[begun_ % waiting_.size()];
    lock.unlock();
    std::memcpy(copy.to, copy.from, copy.bytes);
    lock.lock();
    ++finished_;
    done_.notify_all();
  }
}

}  // namespace tessera::cpu
