#include "tessera/accelerator/plugin_work.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "tessera/accelerator/loaded_programs.h"
#include "tessera/base/error.h"
#include "tessera/base/start_thread.h"

namespace tessera {

namespace {

constexpr auto kToEnd = std::chrono::seconds(1);

}  // namespace

/// A thread that does one work after another, and all that it shares with those who wait for it.
class PluginThreads::OfWork {
 public:
  /// Errors: no more threads.
  static std::shared_ptr<OfWork> start() {
    auto out = std::make_shared<OfWork>();
    out->thread_ = start_thread([self = out] { self->do_all(); });
    return out;
  }

  void begin(std::function<void()> work, std::function<void()> afterwards) {
    {
      const std::scoped_lock lock(mutex_);
      work_ = std::move(work);
      afterwards_ = std::move(afterwards);
      failure_ = nullptr;  // that nobody was told
      failed_ = false;
      at_ = At::Work;
    }
    changed_.notify_all();
  }
  /// True: `work` has ended. Errors: of `work`.
  bool wait_for_work(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, time, [&] { return at_ != At::Work; })) return false;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return true;
  }
  /// Until all that was begun has ended, and nothing is left of it: for sure where `work` has
  /// succeeded, and else for a while. False: it lasts.
  bool wait_for_all() {
    std::unique_lock lock(mutex_);
    const auto waits = [&] { return at_ == At::Wait; };
    if (at_ == At::Work || failed_) return changed_.wait_for(lock, kToEnd, waits);
    changed_.wait(lock, waits);
    return true;
  }

  /// Of one that waits.
  void end() {
    {
      const std::scoped_lock lock(mutex_);
      at_ = At::End;
    }
    changed_.notify_all();
    thread_.join();
  }
  /// Of one that lasts: it ends, if ever, behind its work.
  void leave_behind() {
    const std::scoped_lock lock(mutex_);
    left_ = true;
    if (at_ == At::Wait) at_ = At::End;
    changed_.notify_all();
    thread_.detach();
  }

 private:
  enum class At { Wait, Work, Afterwards, End };

  void do_all() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return at_ == At::Work || at_ == At::End; });
      if (at_ == At::End) return;
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failed_ = failure != nullptr;
      failure_ = std::move(failure);
      at_ = At::Afterwards;
      lock.unlock();
      changed_.notify_all();
      afterwards_();
      work_ = nullptr;
      afterwards_ = nullptr;
      lock.lock();
      at_ = left_ ? At::End : At::Wait;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  At at_ = At::Wait;
  bool failed_ = false;  // the last work
  bool left_ = false;
  std::function<void()> work_, afterwards_;  // the thread's own, behind begin()
  std::exception_ptr failure_;               // until somebody is told
  std::thread thread_;
};

std::shared_ptr<PluginThreads::OfWork> PluginThreads::take() {
  {
    const std::scoped_lock lock(mutex_);
    if (!waiting_.empty()) {
      std::shared_ptr<OfWork> out = std::move(waiting_.back());
      waiting_.pop_back();
      return out;
    }
  }
  return OfWork::start();
}

void PluginThreads::give_back(std::shared_ptr<OfWork> thread) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(std::move(thread));
}

PluginThreads::~PluginThreads() {
  for (const auto& thread : waiting_) thread->end();
}

PluginWork::PluginWork(PluginThreads& threads, std::function<void()> work,
                       std::function<void()> afterwards, Patience patience)
    : threads_(threads), thread_(threads.take()), patience_(std::move(patience)) {
  thread_->begin(std::move(work), std::move(afterwards));
}

PluginWork::~PluginWork() {
  if (thread_->wait_for_all()) {
    threads_.give_back(std::move(thread_));
  } else {
    thread_->leave_behind();
  }
}

bool PluginWork::over() {
  if (thread_->wait_for_work(kBetweenSigns)) return true;
  require_life();
  return false;
}

void PluginWork::require_life() {
  if (patience_.time.count() == 0) return;
  const std::int64_t signs = patience_.signs ? patience_.signs->load() : 0;
  if (std::exchange(seen_, signs) != signs) seen_at_ = Clock::now();
  if (Clock::now() - seen_at_ < patience_.time) return;
  fail(Fault::Peer, patience_.name, " shows no sign of life for ",
       std::chrono::duration<double>(patience_.time).count(),
       " s: a device hangs, or waits for one that does; resume from the last checkpoint, or if "
       "its steps take longer, give a longer --distributed-timeout");
}

void PluginWork::wait(Communicator* world) {
  while (!over()) {
    if (world == nullptr) continue;
    world->alive();
    if (world->peer_failed()) meet(world, "the end of a plugin's call");  // it fails, and says why
  }
}

}  // namespace tessera
