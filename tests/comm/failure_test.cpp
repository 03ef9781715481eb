/// Ranks that fail, hang, end early or call different things.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/outcome.h"
#include "tessera/base/error.h"
#include "tessera/comm/local.h"
#include "tessera/comm/work_alone.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

void call(Communicator& comm, const Collective& c) {
  static constexpr std::size_t kBytes = 1 << 20;
  std::vector<std::byte> in(kBytes), out(kBytes);
  comm.run(c, in.data(), out.data());
}

TEST(Failure, RanksThatCallDifferentThingsAreNamed) {
  const auto sum = [](DType dtype, std::int64_t count) {
    return Collective::all_reduce(dtype, {count}, Monoid::Sum, "grads");
  };
  struct Case {
    Collective most, one;
    const char *says_most, *says_one;
  };
  const Case cases[] = {
      {sum(DType::F32, 4), Collective::all_gather(DType::F32, {4}, 0, "w"), "all_reduce sum f32[4]",
       "all_gather f32[4] on dim 0"},
      {sum(DType::F32, 4), sum(DType::I32, 4), "all_reduce sum f32[4]", "all_reduce sum i32[4]"},
      {sum(DType::F32, 4), sum(DType::F32, 5), "all_reduce sum f32[4]", "all_reduce sum f32[5]"},
      // One copies at the barrier, the other does not.
      {sum(DType::F32, 4), sum(DType::F32, 9999), "all_reduce sum f32[4]",
       "all_reduce sum f32[9999]"},
      {sum(DType::F32, 9999), sum(DType::F32, 9998), "all_reduce sum f32[9999]",
       "all_reduce sum f32[9998]"},
      {sum(DType::F32, 4), Collective::all_reduce(DType::F32, {4}, Monoid::Max, "m"),
       "all_reduce sum f32[4]", "all_reduce max f32[4]"},
      {Collective::broadcast(DType::F32, {4}, 0, "w"),
       Collective::broadcast(DType::F32, {4}, 1, "w"), "broadcast f32[4] from member 0",
       "broadcast f32[4] from member 1"},
      {Collective::barrier("b"), sum(DType::F32, 4), "barrier", "all_reduce sum f32[4]"},
  };
  for (const Case& c : cases) {
    for (const int odd : {0, 2}) {
      const Outcome out = outcome_of(3, [&](Communicator& world) {
        call(world, sum(DType::F32, 3));
        call(world, world.rank() == odd ? c.one : c.most);
      });
      SCOPED_TRACE(out.message);
      EXPECT_EQ(out.fault, Fault::Peer);
      EXPECT_TRUE(has(out.message, text("rank ", odd, " calls ", c.says_one)));
      EXPECT_TRUE(has(out.message, text("calls ", c.says_most)));
      EXPECT_TRUE(has(out.message, "as number 2"));
      EXPECT_LT(out.took, kNoticed);
    }
  }
}

TEST(Failure, AReceiveOfAnotherSizeIsNamed) {
  const Outcome out = outcome_of(2, [&](Communicator& world) {
    if (world.rank() == 0) {
      call(world, Collective::send(DType::F32, {4}, 1, "x"));
    } else {
      call(world, Collective::recv(DType::F64, {4}, 0, "x"));
    }
  });
  EXPECT_TRUE(has(out.message, "rank 0 sends f32[4]")) << out.message;
  EXPECT_TRUE(has(out.message, "rank 1 receives f64[4]")) << out.message;
}

TEST(Failure, ARankThatThrowsStopsAll) {
  for (const int n : {2, 4, 8}) {
    const Outcome out = outcome_of(n, [&](Communicator& world) {
      for (std::int64_t step = 0;; ++step) {
        world.set_step(step);
        if (step == 12 && world.rank() == 1) fail(Fault::Numerics, "the loss is nan\nlook at it");
        call(world, Collective::all_reduce(DType::F32, {1000}, Monoid::Sum, "grads"));
      }
    });
    SCOPED_TRACE(out.message);
    EXPECT_LT(out.took, kNoticed);
    EXPECT_EQ(out.fault, Fault::Numerics);  // the first cause, with where it was
    EXPECT_TRUE(has(out.message, "the loss is nan\nlook at it\n    rank 1 of "));
    EXPECT_TRUE(has(out.message, "in step 12, after all_reduce 'grads' (number 12 of world)") ||
                has(out.message, "in step 12 after all_reduce 'grads' (number 12 of world)"));
    for (int r = 0; r < n; ++r) {
      if (r == 1) continue;
      const std::string& seen = out.seen[static_cast<std::size_t>(r)];
      EXPECT_TRUE(has(seen, text("rank 1 of ", n, " failed in step 12"))) << seen;
      EXPECT_TRUE(has(seen, "the loss is nan")) << seen;
      EXPECT_TRUE(has(seen, text("rank ", r,
                                 " stopped in step 12 at all_reduce sum f32[1000] "
                                 "'grads' (number 13 of group world")))
          << seen;
    }
  }
}

TEST(Failure, ExceptionsOfOtherTypesArriveAsTheyAre) {
  EXPECT_THROW(run_ranks(3,
                         [](Communicator& world) {
                           if (world.rank() == 2) throw std::out_of_range("far");
                           call(world, Collective::barrier("b"));
                         }),
               std::out_of_range);
}

/// Memory of ranks that fail is freed while others may be at work on it: for the sanitizers.
TEST(Failure, NobodyTouchesTheMemoryOfARankThatFailed) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> calls{0};
    const Outcome out = outcome_of(4, [&](Communicator& world) {
      const auto pair = world.join(
          Group{text("pair", world.rank() / 2), {world.rank() / 2 * 2, world.rank() / 2 * 2 + 1}});
      const Collective sum = Collective::all_reduce(DType::F32, {3000}, Monoid::Sum, "x");
      const auto send = Collective::send(DType::F32, {5000}, 1 - pair->rank(), "s");
      const auto recv = Collective::recv(DType::F32, {5000}, 1 - pair->rank(), "r");
      for (;;) {
        std::vector<float> in(5000, 1), out(5000), other(5000);
        Ticket sent = pair->start(send, in.data(), nullptr);
        pair->run(sum, in.data(), out.data());
        if (++calls == 20 + round) fail(Fault::Data, "enough");
        world.run(sum, in.data(), out.data());
        Ticket received = pair->start(recv, nullptr, other.data());
        pair->wait(received);
        pair->wait(sent);
      }
    });
    ASSERT_EQ(out.fault, Fault::Data) << out.message;
  }
}

TEST(Failure, ARankThatHangsIsNamed) {
  const LocalOptions options{.deadline = 200ms, .stuck = {}};
  const Outcome out = outcome_of(
      4,
      [&](Communicator& world) {
        world.set_step(7);
        call(world, Collective::all_reduce(DType::F32, {8}, Monoid::Sum, "loss"));
        if (world.rank() == 2) std::this_thread::sleep_for(600ms);
        call(world, Collective::all_reduce(DType::F32, {8}, Monoid::Sum, "grads"));
      },
      options);
  SCOPED_TRACE(out.message);
  EXPECT_LT(out.took, kNoticed);
  EXPECT_EQ(out.fault, Fault::Peer);
  EXPECT_TRUE(has(out.message,
                  "has waited 0.2 s in step 7 at all_reduce sum f32[8] 'grads' (number "
                  "2 of group world (ranks 0, 1, 2, 3))"));
  EXPECT_TRUE(has(out.message,
                  "not arrived: rank 2 (in step 7 after all_reduce 'loss' (number 1 of world))"));
  EXPECT_TRUE(has(out.message, "arrived: ranks 0, 1, 3"));
  EXPECT_TRUE(has(out.seen[2], "rank 2 stopped in step 7 at all_reduce")) << out.seen[2];
}

/// It takes five times the deadline, with a sign of life now and then, or on a thread of its own.
TEST(Failure, ARankThatWorksAloneIsWaitedFor) {
  const LocalOptions options{.deadline = 300ms, .stuck = {}};
  run_ranks(
      3,
      [&](Communicator& world) {
        if (world.rank() == 1) {
          for (int i = 0; i < 75; ++i) std::this_thread::sleep_for(20ms), world.alive();
        }
        call(world, Collective::barrier("a"));
        if (world.rank() == 2) work_alone(&world, [] { std::this_thread::sleep_for(1500ms); });
        call(world, Collective::barrier("b"));
      },
      options);
  // After the last sign of life the deadline begins.
  const Outcome out = outcome_of(
      2,
      [&](Communicator& world) {
        if (world.rank() == 1) {
          work_alone(&world, [] { std::this_thread::sleep_for(500ms); });
          std::this_thread::sleep_for(800ms);
        }
        call(world, Collective::barrier("a"));
      },
      options);
  EXPECT_TRUE(has(out.message, "has waited 0.3 s")) << out.message;
}

TEST(Failure, WorkAloneRethrows) {
  EXPECT_THROW(work_alone(nullptr, [] { throw std::out_of_range("far"); }), std::out_of_range);
  EXPECT_THROW(run_ranks(2,
                         [](Communicator& world) {
                           if (world.rank() == 1)
                             work_alone(&world, [] { throw std::out_of_range("far"); });
                           call(world, Collective::barrier("b"));
                         }),
               std::out_of_range);
}

/// Two ranks wait for each other on groups that cross: each is told where the other is.
TEST(Failure, ADeadlockIsReported) {
  const LocalOptions options{.deadline = 200ms, .stuck = {}};
  const Outcome out = outcome_of(
      2,
      [&](Communicator& world) {
        const auto a = world.join(Group{"a", {0, 1}}), b = world.join(Group{"b", {0, 1}});
        call(world.rank() == 0 ? *a : *b, Collective::barrier("x"));
      },
      options);
  EXPECT_TRUE(has(out.message, "at barrier 'x' (number 1 of group")) << out.message;
  EXPECT_TRUE(has(out.message, "not arrived: rank ")) << out.message;
  EXPECT_TRUE(has(out.message, "before the first step at barrier 'x' (number 1 of "))
      << out.message;
}

TEST(Failure, AReceiveThatNobodySendsIsReported) {
  const LocalOptions options{.deadline = 200ms, .stuck = {}};
  const Outcome out = outcome_of(
      2,
      [&](Communicator& world) {
        if (world.rank() == 0) {
          call(world, Collective::recv(DType::F32, {4}, 1, "x"));
        } else {
          call(world, Collective::barrier("b"));
        }
      },
      options);
  EXPECT_EQ(out.fault, Fault::Peer);
  EXPECT_TRUE(has(out.message, "arrived: rank ")) << out.message;
}

TEST(Failure, ARankThatHasEndedIsNotWaitedFor) {
  const Outcome out = outcome_of(3, [&](Communicator& world) {
    call(world, Collective::barrier("a"));
    if (world.rank() == 1) return;
    call(world, Collective::barrier("b"));
  });
  SCOPED_TRACE(out.message);
  EXPECT_LT(out.took, kNoticed);
  EXPECT_TRUE(has(out.message, "for rank 1, which has ended"));
  EXPECT_TRUE(has(out.message, "after barrier 'a' (number 1 of world)"));
}

/// A thread that never calls again cannot be ended: the program is told, and decides.
TEST(Failure, ARankThatIsStuckIsReported) {
  std::atomic<bool> release{false};
  std::string report;
  const LocalOptions options{.deadline = 300ms, .stuck = [&](const std::string& words) {
                               report = words;
                               release = true;
                             }};
  const Outcome out = outcome_of(
      3,
      [&](Communicator& world) {
        world.set_step(1);
        if (world.rank() == 0) fail(Fault::Data, "no text");
        while (world.rank() == 1 && !release) std::this_thread::sleep_for(1ms);
      },
      options);
  EXPECT_EQ(out.fault, Fault::Data);
  EXPECT_TRUE(has(report, "rank 0 of 3 failed in step 1")) << report;
  EXPECT_TRUE(has(report, "does not end: rank 1 (in step 1")) << report;
}

TEST(Failure, OperandAndResultMayNotOverlap) {
  std::vector<float> x(100);
  run_ranks(1, [&](Communicator& world) {
    EXPECT_THROW(world.run(Collective::all_reduce(DType::F32, {50}, Monoid::Sum, "x"), x.data(),
                           x.data() + 1),
                 Broken);
    EXPECT_THROW(world.run(Collective::reduce_scatter(DType::F32, {50}, 0, Monoid::Sum, "x"),
                           x.data(), x.data()),
                 Broken);
  });
}

}  // namespace
}  // namespace tessera
