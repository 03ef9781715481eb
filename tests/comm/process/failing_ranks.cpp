/// Ranks that fail in one of many ways, as a program would: tell what happened once, end with the
/// fault's code. failure_test.cpp runs it under mpirun and start_ranks.
///
/// Run:  mpirun -n 4 build/failing_ranks HOW
///       build/start_ranks 4 build/failing_ranks HOW

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/processes.h"
#include "tessera/comm/work_alone.h"

/// Which rank stops itself inside of MPI_Finalize: finalize.cpp, where there is an MPI.
int rank_that_stops_in_finalize = -1, this_rank = -1;

namespace {

using namespace tessera;
using namespace std::chrono_literals;

std::atomic<bool> told_to_end = false, asked_to_stop = false;

void call(Communicator& comm, const Collective& c) {
  std::vector<std::byte> in(1 << 20), out(1 << 20);
  comm.run(c, in.data(), out.data());
}

Collective sum(std::int64_t count, const char* name = "grads") {
  return Collective::all_reduce(DType::F32, {count}, Monoid::Sum, name);
}

/// Calls forever; `odd` is called by rank 2 in step 12.
void steps(Communicator& world, std::int64_t count, const std::function<void()>& odd) {
  for (std::int64_t step = 0;; ++step) {
    world.set_step(step);
    if (step == 12 && world.rank() == 2) odd();
    call(world, sum(count));
  }
}

/// Has three calls under way; `between` comes after the first.
void under_way(Communicator& world, const std::function<void()>& between) {
  std::vector<float> a(100), b(200'000), c(1000);
  const Collective first = sum(100, "a"), second = sum(200'000, "b"), third = sum(1000, "c");
  Ticket ta = world.start(first, a.data(), a.data());
  between();
  Ticket tb = world.start(second, b.data(), b.data());
  Ticket tc = world.start(third, c.data(), c.data());
  world.wait(tc), world.wait(ta), world.wait(tb);
}

void compute(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

using Body = std::function<void(Communicator&)>;
const std::map<std::string, Body> kWays = {
    {"throws",
     [](Communicator& world) {
       steps(world, 1000, [] { fail(Fault::Data, "the text is gone\nlook at it"); });
     }},
    {"throws-in-large-calls",
     [](Communicator& world) {
       steps(world, 200'000, [] { fail(Fault::Data, "the text is gone"); });
     }},
    {"throws-under-way",
     [](Communicator& world) {
       for (std::int64_t step = 0;; ++step) {
         world.set_step(step);
         under_way(world, [&] {
           if (step == 12 && world.rank() == 2) fail(Fault::Data, "the text is gone");
         });
       }
     }},
    {"is-slow-under-way",
     [](Communicator& world) {
       world.set_step(3);
       under_way(world, [&] {
         if (world.rank() == 2) compute(2500ms);
       });
     }},
    {"all-throw", [](Communicator&) { fail(Fault::Usage, "no such file"); }},
    {"throws-another-type",
     [](Communicator& world) { steps(world, 10, [] { throw std::out_of_range("far"); }); }},
    {"dies", [](Communicator& world) { steps(world, 1000, [] { raise(SIGKILL); }); }},
    {"dies-in-large-calls",
     [](Communicator& world) {
       if (world.rank() == 2) {
         std::thread([] {
           std::this_thread::sleep_for(300ms);
           raise(SIGKILL);
         }).detach();
       }
       steps(world, 250'000, [] {});
     }},
    {"dies-while-others-compute",
     [](Communicator& world) {
       world.set_step(5);
       call(world, sum(10));
       if (world.rank() == 2) {
         compute(300ms);  // until the others, however busy the machine, have what it sent them
         raise(SIGKILL);
       }
       for (int i = 0; i < 250; ++i) compute(10ms);
     }},
    {"exits", [](Communicator& world) { steps(world, 1000, [] { _exit(0); }); }},
    {"hangs", [](Communicator& world) { steps(world, 1000, [] { compute(1h); }); }},
    {"is-stopped", [](Communicator& world) { steps(world, 1000, [] { raise(SIGSTOP); }); }},
    {"is-slow", [](Communicator& world) { steps(world, 1000, [] { compute(2500ms); }); }},
    {"calls-another",
     [](Communicator& world) {
       steps(world, 1000,
             [&] { call(world, Collective::all_gather(DType::F32, {8}, 0, "weights")); });
     }},
    {"calls-another-size",
     [](Communicator& world) { steps(world, 1000, [&] { call(world, sum(100'000)); }); }},
    {"calls-another-group",
     [](Communicator& world) {
       const auto a = world.join(Group{"a", {0, 1, 2, 3}}),
                  b = world.join(Group{"b", {0, 1, 2, 3}});
       call(world.rank() == 2 ? *b : *a, Collective::barrier("x"));
     }},
    {"sends-another-size",
     [](Communicator& world) {
       if (world.rank() == 0) call(world, Collective::send(DType::F32, {4}, 1, "x"));
       if (world.rank() == 1) call(world, Collective::recv(DType::F64, {4}, 0, "x"));
       call(world, Collective::barrier("b"));
     }},
    {"hangs-at-the-end",
     [](Communicator& world) {
       call(world, Collective::barrier("a"));
       if (world.rank() == 2) compute(1h);
     }},
    {"stops-in-finalize",
     [](Communicator& world) {
       call(world, Collective::barrier("a"));
       rank_that_stops_in_finalize = 2;
     }},
    {"stops-at-start", [](Communicator& world) { call(world, Collective::barrier("a")); }},
    {"works-alone",
     [](Communicator& world) {
       if (world.rank() == 2) work_alone(&world, [] { compute(4s); });
       call(world, Collective::barrier("a"));
       if (world.rank() == 0) std::fprintf(stderr, "all came\n");
     }},
    // Signs of life come between calls too, and at the end of a body.
    {"works-in-parts",
     [](Communicator& world) {
       call(world, Collective::barrier("a"));
       if (world.rank() == 2)
         compute(500ms), world.peer_failed();  // knows that the others have ended
       for (int i = 0; i < 40 && world.rank() == 2; ++i) compute(100ms), world.alive();
       if (world.rank() == 2) std::fprintf(stderr, "all came\n");
     }},
    {"works-alone-and-throws",
     [](Communicator& world) {
       if (world.rank() == 2) work_alone(&world, [] { fail(Fault::Data, "the text is gone"); });
       call(world, Collective::barrier("a"));
     }},
    {"asks-one-to-stop",
     [](Communicator& world) {
       for (std::int64_t step = 0;; ++step) {
         world.set_step(step);
         if (step == 12 && world.rank() == 2) asked_to_stop = true;
         // The one that leads says whether to go on.
         std::int32_t on = world.rank() == 0 && asked_to_stop ? 0 : 1;
         world.run(Collective::broadcast(DType::I32, {1}, 0, "go on"), &on, &on);
         if (on == 0) break;
       }
       // The request may come later than the word of the one that leads.
       using std::chrono::steady_clock;
       const auto until = steady_clock::now() + std::chrono::seconds(10);
       while (!asked_to_stop && steady_clock::now() < until) world.alive();
       std::fprintf(stderr, "rank %d stops, %s\n", world.rank(),
                    asked_to_stop ? "asked" : "unasked");
     }},
    {"ends-early",
     [](Communicator& world) {
       call(world, Collective::barrier("a"));
       if (world.rank() != 2) call(world, Collective::barrier("b"));
     }},
    {"drops-a-send",
     [](Communicator& world) {
       std::vector<float> x(200'000);
       const auto send = Collective::send(DType::F32, {200'000}, 1, "x");
       world.set_step(3);
       if (world.rank() == 0) {
         Ticket ticket = world.start(send, x.data(), nullptr);
         fail(Fault::Data, "the text is gone");
       }
       call(world, Collective::barrier("b"));
     }},
    // Its memory is still being written when it fails.
    {"drops-a-receive",
     [](Communicator& world) {
       std::vector<float> x(2'000'000);
       const auto send = Collective::send(DType::F32, {2'000'000}, 1, "x");
       const auto recv = Collective::recv(DType::F32, {2'000'000}, 0, "x");
       world.set_step(3);
       if (world.rank() == 0) {
         Ticket ticket = world.start(send, x.data(), nullptr);
         compute(100ms);
         call(world, Collective::barrier("b"));
       }
       if (world.rank() == 1) {
         Ticket ticket = world.start(recv, nullptr, x.data()),
                another = world.start(recv, nullptr, x.data());
         for (int i = 0; i < 10; ++i) compute(1ms), world.alive();
         fail(Fault::Data, "the text is gone");
       }
       call(world, Collective::barrier("b"));
     }},
    {"sends-another-size-ahead",
     [](Communicator& world) {
       std::vector<double> x(100);
       if (world.rank() == 0) call(world, Collective::send(DType::F32, {4}, 1, "x"));
       if (world.rank() == 1) {
         const auto recv = Collective::recv(DType::F32, {5}, 0, "x");
         Ticket ticket = world.start(recv, nullptr, x.data());
         while (!world.peer_failed()) world.alive();
         world.wait(ticket);
       }
       call(world, Collective::barrier("b"));
     }},
    {"nobody-sends",
     [](Communicator& world) {
       world.set_step(3);
       if (world.rank() == 0) call(world, Collective::recv(DType::F32, {4}, 1, "x"));
       if (world.rank() != 0) compute(2500ms);
       call(world, Collective::barrier("b"));
     }},
    {"nobody-receives",
     [](Communicator& world) {
       world.set_step(3);
       if (world.rank() == 0) call(world, Collective::send(DType::F32, {200'000}, 1, "x"));
       if (world.rank() != 0) compute(2500ms);
       call(world, Collective::barrier("b"));
     }},
    // What a training loop does: looks before it saves.
    {"asks",
     [](Communicator& world) {
       call(world, Collective::barrier("a"));
       if (world.rank() == 2) compute(200ms), raise(SIGKILL);
       for (int i = 0; i < 200 && !told_to_end; ++i) compute(10ms);
       compute(20ms);
       std::fprintf(stderr, "rank %d %s\n", world.rank(),
                    world.peer_failed() ? "sees a peer that failed" : "would save");
       call(world, Collective::barrier("b"));
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto way = kWays.find(argc > 1 ? argv[1] : "");
  if (way == kWays.end()) {
    std::fprintf(stderr, "usage: failing_ranks HOW\n");
    return 2;
  }
  signal(SIGTERM, [](int) { told_to_end = true; });
  LaunchedOptions options;
  options.deadline = 1500ms;
  // A busy machine may not let all ranks come up as fast.
  if (way->first != "stops-at-start") options.deadline_to_come_up = 20s;
  options.report = [](const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "error: %s\n", e.what());
    }
  };
  options.told_to_end = []() -> bool { return told_to_end; };
  options.stop = &asked_to_stop;
  options.stuck = [](const std::string& report) {
    std::fprintf(stderr, "error: a rank %s\n", report.c_str());
    _exit(7);
  };
  const Launched launched = launch_of([](const char* name) { return std::getenv(name); }, {});
  this_rank = launched.rank;
  if (way->first == "stops-at-start" && this_rank == 2) raise(SIGSTOP);
  try {
    run_launched(launched, way->second, options);
  } catch (const Reported& e) {
    return static_cast<int>(e.fault());
  } catch (const Error& e) {  // before the ranks have met
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.fault());
  }
}
