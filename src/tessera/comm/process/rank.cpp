/// A process as a rank: how it starts and how it ends.

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/start_thread.h"
#include "tessera/comm/backend/running.h"
#include "tessera/comm/process/communicator.h"
#include "tessera/comm/process/link.h"
#include "tessera/comm/process/tcp/meeting.h"
#include "tessera/comm/process/tcp/tcp_link.h"
#include "tessera/comm/process/world.h"
#include "tessera/comm/processes.h"

namespace tessera {

namespace {

using namespace std::chrono_literals;
using process::Cause;
using process::Clock;
using process::World;

/// From the first failure to the end of every rank. Where one has died the launcher ends the rest
/// within a second, so that what is to be told must be told sooner.
constexpr auto kGrace = 2s;
constexpr auto kGraceAfterDeath = 300ms;

/// Notes the exception being handled as the world's failure, unless another was first.
void note_own_failure(World& world) {
  const std::string where =
      text("rank ", world.rank(), " of ", world.size(), ", ", world.seen(world.rank()));
  const auto stop = [&](Fault fault, std::string_view what, const std::exception_ptr& error) {
    world.stop(fault, text("failed ", world.seen(world.rank()), ": ", backend::first_line(what)),
               error);
  };
  world.look();
  try {
    throw;
  } catch (const CommonError& e) {
    stop(e.fault(), e.what(), std::current_exception());
  } catch (const Error& e) {
    stop(e.fault(), e.what(), std::make_exception_ptr(e.with(where)));
  } catch (const std::bad_alloc& e) {
    stop(Fault::Resource, e.what(), std::current_exception());
  } catch (const std::exception& e) {
    stop(Fault::Internal, e.what(), std::current_exception());
  } catch (...) {
    stop(Fault::Internal, "an exception of unknown type", std::current_exception());
  }
}

/// Calls `late` unless it is destroyed within a time: what cannot be called off by waiting.
class Limit {
 public:
  Limit(std::chrono::milliseconds time, std::function<void()> late) {
    thread_ = start_thread([this, time, late = std::move(late)] {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, time, [&] { return over_; })) late();
    });
  }
  ~Limit() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

/// For a call that blocks until all ranks have come to it. Null: nobody wants to know.
std::unique_ptr<Limit> limit_of(const LaunchedOptions& options, std::chrono::milliseconds time,
                                const char* to_do, const char* why) {
  if (!options.stuck) return nullptr;
  return std::make_unique<Limit>(time, [&options, time, to_do, why] {
    const double seconds = std::chrono::duration<double>(time).count();
    options.stuck(text("has waited ", seconds, " s for all ranks to ", to_do, "; ", why));
  });
}

std::string no_end(const World& world) {
  return text("has waited ", std::chrono::duration<double>(world.deadline()).count(),
              " s for others to end; not ended: ", world.not_ended());
}

/// Waits until every rank has come to its end, or is not going to. True: all have ended.
bool await_ends(World& world) {
  process::Patience patience(world.pace());
  std::optional<Clock::time_point> stopped;
  for (;;) {
    world.look();
    bool all = true, ended = true;
    for (int r = 0; r < world.size(); ++r) {
      if (r == world.rank() || world.ended(r)) continue;
      ended = false;
      all = all && world.lost(r);
    }
    if (all) return ended;
    if (!world.stopped() && patience.silent(world.deadline(), [&] { return world.signs(); }))
      world.stop(Fault::Peer, no_end(world), nullptr);
    if (world.stopped() && !stopped) stopped = Clock::now();
    const auto grace = world.any_lost() ? Clock::duration(kGraceAfterDeath) : kGrace;
    if (stopped && Clock::now() - *stopped > grace) return false;
    patience.wait();
  }
}

/// The rank that tells what happened: the cause's, or the lowest that lives.
bool is_teller(const World& world) {
  const int cause = world.cause().rank;
  if (!world.any_lost()) return cause == world.rank();
  for (int r = 0; r < world.rank(); ++r) {
    if (!world.lost(r)) return false;
  }
  return true;
}

std::exception_ptr with(const std::exception_ptr& failure, const std::string& line) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    return std::make_exception_ptr(e.with(line));
  } catch (const std::exception& e) {
    return std::make_exception_ptr(Error(Fault::Internal, text(e.what(), "\n    ", line)));
  } catch (...) {
    return failure;
  }
}

/// Tells the world's failure, where this rank is the one to do so. Gives what this rank ends with.
std::exception_ptr report(World& world, const LaunchedOptions& options, const std::string& more) {
  const Cause& cause = world.cause();
  if (is_teller(world) && world.may_report()) {
    std::exception_ptr failure = std::make_exception_ptr(Error(cause.fault, cause.why));
    if (cause.rank == world.rank()) failure = world.error();
    if (!options.report) return failure;
    options.report(more.empty() ? failure : with(failure, more));
  }
  return std::make_exception_ptr(Reported(cause.fault, cause.why));
}

/// Ends a world in which some rank neither ends nor has died.
std::exception_ptr end_stuck(World& world, process::Link& link, const LaunchedOptions& options) {
  std::exception_ptr out = report(world, options, text("does not end: ", world.not_ended()));
  if (!is_teller(world)) std::this_thread::sleep_for(1s);  // it comes first
  link.end_all(static_cast<int>(world.cause().fault));
  return out;
}

/// One rank from its link to its end.
void run_one(process::Link& link, const std::function<void(Communicator&)>& body,
             const LaunchedOptions& options, std::unique_ptr<Limit> limit) {
  std::exception_ptr failure;
  bool all_ended = false;
  {
    World world(link, options);
    limit.reset();
    try {
      const auto communicator = std::make_unique<process::ProcessCommunicator>(
          world, world_group(world.size()), world.rank());
      body(*communicator);
    } catch (...) {
      note_own_failure(world);
    }
    world.end();
    all_ended = await_ends(world);
    if (world.stopped())
      failure = !all_ended && !world.any_lost() ? end_stuck(world, link, options)
                                                : report(world, options, "");
  }
  // After a failure, which is reported by now, ranks come here one after another, as they notice
  // it.
  if (!failure)
    limit = limit_of(options, options.deadline, "leave each other",
                     "some rank hangs; the work itself is done");
  if (all_ended) link.finish();  // it would wait for a dead one
  limit.reset();
  if (failure) std::rethrow_exception(failure);
}

std::chrono::milliseconds time_to_come_up(const LaunchedOptions& options) {
  return options.deadline_to_come_up.value_or(options.deadline);
}

std::unique_ptr<Limit> limit_to_come_up(const LaunchedOptions& options) {
  return limit_of(options, time_to_come_up(options), "come up",
                  "some rank has not started, hangs, or cannot be reached");
}

void run_tcp_rank(const Launched& launched, int rank,
                  const std::function<void(Communicator&)>& body, const LaunchedOptions& options) {
  require(launched.secret.size() >= process::Secret::kLeast || launched.size == 1,
          "ranks that join over TCP need a shared secret, so that nobody else joins: ",
          launched.secret.empty() ? "there is none" : "this one is too short", "; set ",
          "TESSERA_SECRET to at least ", process::Secret::kLeast,
          " random characters, the same for all ranks");
  const process::Rendezvous where = {rank,
                                     launched.size,
                                     launched.address,
                                     launched.port,
                                     launched.run,
                                     launched.where,
                                     rank == 0 ? launched.listener : -1,
                                     process::Secret(launched.secret)};
  process::TcpLink link(rank, process::meet(where, time_to_come_up(options)));
  run_one(link, body, options, limit_to_come_up(options));
}

/// Threads of this process as ranks: each has connections of its own.
void run_tcp_ranks(const Launched& launched, const std::function<void(Communicator&)>& body,
                   const LaunchedOptions& options) {
  backend::Running running(launched.here);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(launched.here));
  std::vector<std::thread> threads;
  const auto run = [&](int i) {
    try {
      run_tcp_rank(launched, launched.rank + i, body, options);
    } catch (...) {
      failures[static_cast<std::size_t>(i)] = std::current_exception();
      running.stop_seen();
    }
    running.one_ended();
  };
  for (int i = 0; i < launched.here; ++i) {
    try {
      threads.emplace_back(run, i);
    } catch (...) {  // no more threads to be had: the others wait for these ranks, and say so
      failures[static_cast<std::size_t>(i)] = std::current_exception();
      for (int rest = i; rest < launched.here; ++rest) running.one_ended();
      running.stop_seen();
      break;
    }
  }
  if (!running.wait(options.deadline + kGrace) && options.stuck)
    options.stuck("has ranks that hang beside one that failed");
  for (std::thread& thread : threads) thread.join();
  // One of them may have words that nobody has told.
  std::exception_ptr reported;
  for (const std::exception_ptr& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const Reported&) {
      reported = failure;
    }
  }
  if (reported) std::rethrow_exception(reported);
}

}  // namespace

void run_launched(const Launched& launched, const std::function<void(Communicator&)>& body,
                  const LaunchedOptions& options) {
  check(launched.how != Launched::Alone, "this process was started alone");
  // Connections with every other rank, and what watches their processes.
  constexpr std::uint64_t kOther = 256;
  if (launched.how == Launched::Tcp)
    process::allow_files(kOther + std::uint64_t{2} * static_cast<std::uint64_t>(launched.here) *
                                      static_cast<std::uint64_t>(launched.size));
  if (launched.how == Launched::Tcp && launched.here > 1)
    return run_tcp_ranks(launched, body, options);
  if (launched.how == Launched::Tcp) return run_tcp_rank(launched, launched.rank, body, options);
  std::unique_ptr<Limit> limit = limit_to_come_up(options);
  const std::unique_ptr<process::Link> link = process::open_mpi_link();
  run_one(*link, body, options, std::move(limit));
}

}  // namespace tessera
