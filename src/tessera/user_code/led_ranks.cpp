#include "tessera/user_code/led_ranks.h"

#include <chrono>
#include <utility>

#include "tessera/launch/ranks.h"

namespace tessera {

namespace {

using namespace std::chrono_literals;

/// A leader that waits longer for work shows the other ranks that it is alive.
constexpr auto kShortWait = 2s;

}  // namespace

LedRanks::LedRanks(RunConfig config, Compile compile,
                   const std::function<void(RankGroup& group)>& begin, Console& console)
    : config_(std::move(config)), compile_(std::move(compile)) {
  ranks_ = std::thread([this, &console] { run_ranks(console); });
  try {
    on_leader(begin);
  } catch (...) {
    ranks_.join();
    throw;
  }
}

LedRanks::~LedRanks() {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  ranks_.join();
}

void LedRanks::on_leader(const std::function<void(RankGroup& group)>& work) {
  const std::lock_guard<std::mutex> one(asking_);
  std::unique_lock<std::mutex> hold(mutex_);
  if (!ended_) {
    work_ = &work;
    changed_.notify_all();
    changed_.wait(hold, [&] { return work_ == nullptr || ended_; });
  }
  work_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
}

void LedRanks::run_ranks(Console& console) {
  std::exception_ptr failure;
  try {
    on_ranks(config_, nullptr, console, [&](Communicator* world, const Backend& backend) {
      const int rank = world == nullptr ? 0 : world->rank();
      RankGroup group(compile_(backend, rank), backend, world, kFast);
      if (rank > 0) return group.follow();
      lead(group);
    });
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard<std::mutex> hold(mutex_);
  ended_ = true;
  failure_ = failure;
  changed_.notify_all();
}

void LedRanks::lead(RankGroup& group) {
  while (true) {
    await_work(group);
    std::unique_lock<std::mutex> hold(mutex_);
    if (work_ == nullptr) break;  // no more will come
    const std::function<void(RankGroup&)>& work = *work_;
    hold.unlock();
    work(group);
    hold.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
  group.stop();
}

void LedRanks::await_work(RankGroup& group) {
  const auto comes = [&] { return work_ != nullptr || ends_; };
  {
    std::unique_lock<std::mutex> hold(mutex_);
    if (changed_.wait_for(hold, kShortWait, comes)) return;
  }
  group.run_alone([&] {
    std::unique_lock<std::mutex> hold(mutex_);
    changed_.wait(hold, comes);
  });
}

}  // namespace tessera
