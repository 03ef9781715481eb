#include "tessera/device/cpu/copy_engine.h"

#include <pthread.h>

#include <cstring>

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

std::uint64_t CopyEngine::start(void* to, const void* from, std::size_t bytes) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({to, from, bytes});
  }
  wanted_.notify_one();
  return ++started_;
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
    wanted_.wait(lock, [&] { return ends_ || next_ < waiting_.size(); });
    if (next_ == waiting_.size()) return;
    const Copy copy = waiting_[next_++];
    if (next_ == waiting_.size()) waiting_.clear(), next_ = 0;
    lock.unlock();
    std::memcpy(copy.to, copy.from, copy.bytes);
    lock.lock();
    ++finished_;
    done_.notify_all();
  }
}

}  // namespace tessera::cpu
