#include "tessera/device/cpu/pool.h"

#include <hwy/cache_control.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/base/start_thread.h"

namespace tessera::cpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSpins =
    500;  // pauses before the first yield: some ten microseconds, the gap between two kernels
constexpr auto kAwake =
    std::chrono::microseconds(1500);  // idle helpers yield for so long, then sleep in the kernel
constexpr auto kBetweenMoves = std::chrono::milliseconds(5);

/// The system's names of `count` of the cores on which the calling thread may run, from the first
/// on. What a container or taskset has left need not begin at 0.
std::vector<int> cores_to_pin(int first, int count) {
  const cpu_set_t allowed = usable_cores();
  std::vector<int> out;
  int at = 0;
  for (int core = 0; core < CPU_SETSIZE && static_cast<int>(out.size()) < count; ++core) {
    if (CPU_ISSET(static_cast<unsigned>(core), &allowed) && at++ >= first) out.push_back(core);
  }
  require(static_cast<int>(out.size()) == count, "a device cannot pin ", count,
          " threads from core ", first, " on: this process may run on ", CPU_COUNT(&allowed),
          " cores; start at a lower core, or use fewer threads per device");
  return out;
}

void pin(pthread_t thread, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  require(pthread_setaffinity_np(thread, sizeof(set), &set) == 0,
          "a thread cannot be pinned to core ", core,
          ": this process may no longer use it; start again");
}

/// Moves the calling thread away from `core`, where it may run on others. Schedulers wake a thread
/// on the core of the one that woke it, and may leave both there for seconds.
void leave(int core) {
  cpu_set_t allowed, others;
  if (pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed) != 0) return;
  others = allowed;
  CPU_CLR(static_cast<unsigned>(core), &others);
  if (CPU_COUNT(&others) == 0) return;
  if (pthread_setaffinity_np(pthread_self(), sizeof(others), &others) != 0)
    return;  // moves at once
  pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
}

}  // namespace

struct Pool::State {
  /// What one helper waits on. A cache line of its own: the caller writes it once per job.
  struct alignas(64) Helper {
    std::atomic<int> ticket{
        0};  // grows by one per job that this helper takes part in; negative: stop
    std::thread thread;
  };

  int threads;
  std::vector<int> cores;  // by thread; empty: not pinned
  std::vector<Helper> helpers;

  // The job: written by the caller before it moves the tickets, read by the helpers that it woke.
  int count = 0;
  int caller_core = -1;  // where threads are not pinned
  void (*call)(const void*, int) = nullptr;
  const void* task = nullptr;

  alignas(64) std::atomic<int> running{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the one that set `failed` first; read when nobody runs
  pthread_t pinned{};        // the last caller that was pinned
  bool any_pinned = false;

  State(int threads, int first_core)
      : threads(threads), helpers(static_cast<std::size_t>(threads - 1)) {
    if (first_core >= 0) cores = cores_to_pin(first_core, threads);
  }

  void take_part(int thread) {
    try {
      for (int i = thread; i < count; i += threads) call(task, i);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }

  void help(int thread) {
    std::atomic<int>& ticket = helpers[static_cast<std::size_t>(thread - 1)].ticket;
    Clock::time_point moved{};
    for (int seen = 0;;) {
      seen = next_ticket(ticket, seen);
      if (seen < 0) return;
      if (caller_core >= 0 && sched_getcpu() == caller_core &&
          Clock::now() - moved > kBetweenMoves) {
        leave(caller_core);
        moved = Clock::now();
      }
      take_part(thread);
      running.fetch_sub(1, std::memory_order_release);
    }
  }

  static int next_ticket(const std::atomic<int>& ticket, int seen) {
    int now = seen;
    const auto changed = [&] { return (now = ticket.load(std::memory_order_acquire)) != seen; };
    for (int i = 0; i < kSpins; ++i) {
      if (changed()) return now;
      hwy::Pause();
    }
    const auto asleep_at = Clock::now() + kAwake;
    do {
      if (changed()) return now;
      sched_yield();
    } while (Clock::now() < asleep_at);
    while (!changed()) ticket.wait(seen, std::memory_order_acquire);
    return now;
  }

  void wait_for_helpers() const {
    for (int i = 0; running.load(std::memory_order_acquire) != 0; ++i) {
      if (i < kSpins) {
        hwy::Pause();
      } else {
        sched_yield();
      }
    }
  }

  void stop() {
    for (Helper& helper : helpers) {
      helper.ticket.store(-1, std::memory_order_release);
      helper.ticket.notify_one();
    }
    for (Helper& helper : helpers) {
      if (helper.thread.joinable()) helper.thread.join();
    }
  }
};

Pool::Pool(int threads, int first_core) {
  require(threads >= 1, "a device needs at least one thread, not ", threads);
  state_ = std::make_unique<State>(threads, first_core);
  try {
    for (int t = 1; t < threads; ++t) {
      State::Helper& helper = state_->helpers[static_cast<std::size_t>(t - 1)];
      helper.thread = start_thread([state = state_.get(), t] { state->help(t); });
      if (first_core >= 0)
        pin(helper.thread.native_handle(), state_->cores[static_cast<std::size_t>(t)]);
    }
  } catch (...) {
    state_->stop();
    throw;
  }
}

Pool::~Pool() { state_->stop(); }

int Pool::threads() const { return state_->threads; }

void Pool::pin_caller() const {
  State& s = *state_;
  if (s.cores.empty() || (s.any_pinned && pthread_equal(s.pinned, pthread_self()))) return;
  pin(pthread_self(), s.cores.front());
  s.pinned = pthread_self();
  s.any_pinned = true;
}

void Pool::run_erased(int count, void (*call)(const void*, int), const void* task) {
  State& s = *state_;
  pin_caller();
  const int helpers = std::min(s.threads, count) - 1;
  if (helpers <= 0) {
    for (int i = 0; i < count; ++i) call(task, i);
    return;
  }
  s.count = count, s.call = call, s.task = task;
  s.caller_core = s.cores.empty() ? sched_getcpu() : -1;
  s.running.store(helpers, std::memory_order_relaxed);
  for (int i = 0; i < helpers; ++i) {
    std::atomic<int>& ticket = s.helpers[static_cast<std::size_t>(i)].ticket;
    ticket.store((ticket.load(std::memory_order_relaxed) + 1) & 0x7fffffff,
                 std::memory_order_release);
    ticket.notify_one();  // a look at a counter where nobody sleeps
  }
  s.take_part(0);
  s.wait_for_helpers();
  if (s.failed.load(std::memory_order_relaxed)) {
    s.failed.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(s.error, nullptr));
  }
}

}  // namespace tessera::cpu
