/// Threads as ranks: how they start and how they end.

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/start_thread.h"
#include "tessera/comm/backend/call.h"
#include "tessera/comm/backend/running.h"
#include "tessera/comm/local.h"
#include "tessera/comm/local/communicator.h"
#include "tessera/comm/local/world.h"

namespace tessera {

namespace {

using backend::first_line;
using backend::Running;
using backend::Seen;
using local::LocalCommunicator;
using local::World;

/// Notes the exception being handled as the world's failure, with the place, unless another was
/// first.
void note_where(World& world, int rank) {
  const Seen at = world.places[static_cast<std::size_t>(rank)].view();
  const std::exception_ptr error = std::current_exception();
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    world.stop(rank,
               std::make_exception_ptr(e.with(text("rank ", rank, " of ", world.size(), ", ", at))),
               text("failed ", at, ": ", first_line(e.what())));
  } catch (const std::exception& e) {
    world.stop(rank, error, text("failed ", at, ": ", first_line(e.what())));
  } catch (...) {
    world.stop(rank, error, text("failed ", at));
  }
}

/// The same; where there is no memory for the place, without it.
void note_failure(World& world, int rank) {
  const std::exception_ptr error = std::current_exception();
  try {
    note_where(world, rank);
  } catch (const std::bad_alloc&) {
    world.stop(rank, error, "failed");
  }
}

void run_rank(World& world, int rank, const std::function<void(Communicator&)>& body,
              Running& running) {
  try {
    LocalCommunicator communicator(world, world.group(world_group(world.size())), rank);
    body(communicator);
  } catch (...) {
    note_failure(world, rank);
  }
  world.places[static_cast<std::size_t>(rank)].end();
  if (world.stopped()) running.stop_seen();
  running.one_ended();
}

/// "rank 2 (in step 3 after ...) does not end"
std::string stuck_report(const World& world) {
  std::string who;
  for (int r = 0; r < world.size(); ++r) {
    const Seen at = world.places[static_cast<std::size_t>(r)].view();
    if (!at.ended) who += text(who.empty() ? "rank " : ", rank ", r, " (", at, ")");
  }
  return text(world.why(), "\n    does not end: ", who);
}

}  // namespace

void run_ranks(int n, const std::function<void(Communicator&)>& body, const LocalOptions& options) {
  require(n >= 1, "a world has at least one rank, not ", n);
  World world(n, options.deadline);
  Running running(n);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    try {
      threads.push_back(start_thread([&, r] { run_rank(world, r, body, running); }));
    } catch (...) {  // no more threads to be had: the others are told
      note_failure(world, r);
      running.stop_seen();
      for (int rest = r; rest < n; ++rest) running.one_ended();
      break;
    }
  }
  if (!running.wait(options.deadline) && options.stuck) options.stuck(stuck_report(world));
  for (std::thread& thread : threads) thread.join();
  if (world.stopped()) std::rethrow_exception(world.cause());
}

}  // namespace tessera
