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

constexpr auto kBetweenSigns = std::chrono::milliseconds(20);
constexpr auto kToEnd = std::chrono::seconds(1);

}  // namespace

struct PluginWork::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, ended = false;  // the work; the thread, for all that it owns
  std::exception_ptr failure;
  std::thread thread;

  void set(bool State::*flag) {
    {
      const std::scoped_lock lock(mutex);
      this->*flag = true;
    }
    changed.notify_all();
  }
  bool wait(bool State::*flag, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [&] { return this->*flag; });
  }
  /// Then the end of the thread comes for sure.
  bool succeeded() {
    const std::scoped_lock lock(mutex);
    return done && !failure;
  }
};

PluginWork::PluginWork(std::function<void()> work, std::function<void()> afterwards,
                       Patience patience)
    : state_(std::make_shared<State>()), patience_(std::move(patience)) {
  state_->thread = start_thread(
      [state = state_, work = std::move(work), afterwards = std::move(afterwards)]() mutable {
        try {
          work();
        } catch (...) {
          const std::scoped_lock lock(state->mutex);
          state->failure = std::current_exception();
        }
        state->set(&State::done);
        afterwards();
        work = nullptr;
        afterwards = nullptr;
        state->set(&State::ended);
      });
}

PluginWork::~PluginWork() {
  if (state_->succeeded() || state_->wait(&State::ended, kToEnd)) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

bool PluginWork::over() {
  if (!state_->wait(&State::done, kBetweenSigns)) {
    require_life();
    return false;
  }
  if (state_->failure) std::rethrow_exception(state_->failure);
  return true;
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
