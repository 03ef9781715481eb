#include "tessera/accelerator/session.h"

#include <chrono>

#include "tessera/accelerator/memory_text.h"
#include "tessera/accelerator/run_stages.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// For the end of what a run that failed has started.
constexpr auto kToEndRun = std::chrono::seconds(1);

/// What goes wrong behind the first error is nobody's.
void wait_quietly(const std::vector<pjrt::Event>& events) {
  for (const pjrt::Event& event : events) {
    try {
      event.wait();
    } catch (const Error&) {  // the first one was told
    }
  }
}

}  // namespace

Session::Session(std::shared_ptr<LoadedPrograms> devices,
                 std::vector<std::shared_ptr<const Plan>> plans, From from)
    : devices_(std::move(devices)),
      plans_(std::move(plans)),
      ranks_(plans_.size()),
      numbers_(static_cast<std::size_t>(plans_[0]->stages)) {
  for (std::size_t i = 0; i < plans_[0]->programs.size(); ++i) {
    try {
      programs_.push_back(devices_->compile(plans_, i, from));
    } catch (const pjrt::OutOfMemory& error) {
      throw error.with(memory_text(*devices_, *plans_[0], i, nullptr));
    } catch (const Error& error) {
      throw error.with(text("in program ", plans_[0]->programs[i].name));
    }
  }
}

RankBuffers& Session::buffers(int rank) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kToEndRun, [&] { return running_ == 0; }))
    fail(Fault::Peer, devices_->client().plugin().file(),
         ": the devices are still at a run that was given up; resume from the last checkpoint");
  return ranks_[static_cast<std::size_t>(rank - devices_->processes().here().first)];
}

void Session::naming_memory(std::size_t program, const std::function<void()>& work) const {
  try {
    work();
  } catch (const pjrt::OutOfMemory& error) {
    throw error.with(memory_text(*devices_, *plans_[0], program, &programs_[program]));
  }
}

void Session::run(std::size_t program, int rank, Communicator* world) {
  try {
    const std::int64_t ended = devices_->ended_calls();
    meet(world, "arguments of a program");
    start(program, rank, ended, world);
    meet(world, "results of a program");
  } catch (...) {
    close();
    throw;
  }
}

void Session::start(std::size_t program, int rank, std::int64_t ended, Communicator* world) {
  const bool leads = devices_->processes().leads(rank);
  const auto self = shared_from_this();
  std::shared_ptr<void> running;  // while its run lasts, on whichever thread
  if (leads) {
    begin_run();
    running = std::shared_ptr<void>(nullptr, [self](void*) { self->end_run(); });
  }
  const auto started = std::make_shared<std::vector<pjrt::Event>>();
  const auto signs = std::make_shared<std::atomic<std::int64_t>>(0);
  const auto run = [self, started, program, signs] {
    self->naming_memory(program, [&] {
      run_stages(self->programs_[program], *self->devices_, self->ranks_, self->numbers_, *started,
                 signs);
    });
  };
  try {
    devices_->call(
        rank, ended, run, [started, running = std::move(running)] { wait_quietly(*started); },
        devices_->patience(text("program ", plans_[0]->programs[program].name), signs), world);
  } catch (...) {
    if (leads) give_up();
    throw;
  }
}

void Session::begin_run() {
  const std::scoped_lock lock(mutex_);
  if (closed_)
    fail(Fault::Peer, devices_->client().plugin().file(),
         ": no program runs after one has failed; resume from the last checkpoint");
  ++running_;
}

void Session::end_run() {
  {
    const std::scoped_lock lock(mutex_);
    --running_;
  }
  changed_.notify_all();
}

void Session::give_up() {
  close();
  devices_->give_up(shared_from_this());
}

void Session::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
}

}  // namespace tessera
