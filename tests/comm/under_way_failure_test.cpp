/// Ranks that fail, disagree or do not come while collectives are under way.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/cemetery.h"
#include "comm/outcome.h"
#include "tessera/base/error.h"
#include "tessera/comm/local.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

Collective sum_of(std::int64_t count, const char* name) {
  return Collective::all_reduce(DType::F32, {count}, Monoid::Sum, name);
}
Collective gather(std::int64_t count, const char* name) {
  return Collective::all_gather(DType::F32, {count}, 0, name);
}

/// A call whose memory dies with it, after its ticket.
struct FailingCall {
  FailingCall(Communicator& comm, const Collective& what, Cemetery& cemetery)
      : comm(comm), c(what), in(cemetery, what.whole.numel()), out(cemetery, what.whole.numel()) {
    ticket = comm.start(c, in.data(), out.data());
  }
  Communicator& comm;
  Collective c;
  Buffer in, out;
  Ticket ticket;
};

/// Starts and waits for calls of two groups until it, or a peer, fails.
void until_one_fails(Communicator& world, unsigned round, Cemetery& cemetery,
                     std::atomic<int>& left) {
  const int n = world.size();
  std::mt19937 shared(round), own(round * 100 + static_cast<unsigned>(world.rank()));
  const Group ends{"ends", {0, n - 1}};
  const auto pair = ends.index_of(world.rank()) < 0 ? nullptr : world.join(ends);
  std::vector<std::unique_ptr<FailingCall>> under_way;
  const auto live = [&] {
    if (--left == 0) fail(Fault::Data, "enough");
  };
  for (;;) {
    Communicator* const comm = shared() % 3 == 0 ? pair.get() : &world;
    const std::int64_t count = shared() % 3 == 0 ? 12 : 6000;
    const Collective c = shared() % 2 == 0 ? sum_of(count, "s") : gather(count, "g");
    if (comm == nullptr) continue;
    live();
    under_way.push_back(std::make_unique<FailingCall>(*comm, c, cemetery));
    live();
    while (own() % 10 < under_way.size()) {
      const auto i = static_cast<std::ptrdiff_t>(own() % under_way.size());
      FailingCall& call = **(under_way.begin() + i);
      call.comm.wait(call.ticket);
      live();
      under_way.erase(under_way.begin() + i);
    }
  }
}

/// Fails after any number of starts and waits of all ranks; the others are in any of them then.
TEST(UnderWayFailure, NobodyTouchesTheMemoryOfARankThatFailed) {
  for (unsigned round = 0; round < 300; ++round) {
    Cemetery cemetery;
    std::atomic<int> left{1 + static_cast<int>(round)};
    const int n = 2 + static_cast<int>(round % 3);
    const Outcome out =
        outcome_of(n, [&](Communicator& world) { until_one_fails(world, round, cemetery, left); });
    ASSERT_EQ(out.fault, Fault::Data) << out.message;
  }
}

/// Each names the call at which it is stopped, though it waits for a later one.
TEST(UnderWayFailure, TheCallThatAwaitedTheRankIsNamed) {
  Cemetery cemetery;
  std::atomic<int> waiting{0};
  const Outcome out = outcome_of(3, [&](Communicator& world) {
    world.set_step(4);
    FailingCall a(world, sum_of(5, "a"), cemetery);
    if (world.rank() == 1) await(waiting, 2), fail(Fault::Numerics, "the loss is nan");
    FailingCall b(world, sum_of(6000, "b"), cemetery), c(world, sum_of(5, "c"), cemetery);
    world.wait(a.ticket);
    ++waiting;
    world.wait(c.ticket);
  });
  SCOPED_TRACE(out.message);
  EXPECT_LT(out.took, kNoticed);
  EXPECT_EQ(out.fault, Fault::Numerics);
  EXPECT_TRUE(has(out.message, "the loss is nan"));
  const std::string after = "in step 4 after all_reduce 'a' (number 1 of world)";
  for (const std::size_t r : {0U, 2U}) {
    const std::string& seen = out.seen[r];
    EXPECT_TRUE(has(seen, text("rank 1 of 3 failed ", after, ": the loss is nan"))) << seen;
    EXPECT_TRUE(has(seen, text("rank ", r,
                               " stopped in step 4 at all_reduce sum f32[6000] 'b' "
                               "(number 2 of group world")))
        << seen;
  }
}

/// Whoever ends the oldest call in a start that needs its place says which one it was.
TEST(UnderWayFailure, AStartNamesTheCallThatItEnds) {
  Cemetery cemetery;
  std::atomic<int> first{0}, full{0};
  const Outcome out = outcome_of(2, [&](Communicator& world) {
    if (world.rank() == 0) await(first, 1);
    std::vector<std::unique_ptr<FailingCall>> calls;
    for (int i = 0; i < Communicator::kInFlight; ++i)
      calls.push_back(std::make_unique<FailingCall>(world, sum_of(6000, "old"), cemetery));
    ++(world.rank() == 1 ? first : full);
    if (world.rank() == 1) await(full, 1), fail(Fault::Numerics, "the loss is nan");
    FailingCall next(world, sum_of(6000, "new"), cemetery);
  });
  EXPECT_TRUE(has(out.seen[0], "at all_reduce sum f32[6000] 'old' (number 1 of group world"))
      << out.seen[0];
}

TEST(UnderWayFailure, RanksThatCallDifferentThingsAreNamed) {
  for (const std::int64_t count : {5, 6000}) {
    for (const bool in_wait : {false, true}) {
      Cemetery cemetery;
      const Outcome out = outcome_of(3, [&](Communicator& world) {
        const bool odd = world.rank() == 2;
        FailingCall a(world, sum_of(count, "a"), cemetery);
        FailingCall b(world, odd ? gather(count, "other") : sum_of(count, "b"), cemetery);
        FailingCall c(world, sum_of(count, "c"), cemetery);
        if (in_wait) std::this_thread::sleep_for(5ms);
        world.wait(c.ticket);
      });
      SCOPED_TRACE(out.message);
      EXPECT_EQ(out.fault, Fault::Peer);
      EXPECT_TRUE(has(out.message, "call different things as number 2 (here '"));
      EXPECT_TRUE(has(out.message, text("rank 2 calls all_gather f32[", count, "] on dim 0")));
      EXPECT_TRUE(has(out.message, text("calls all_reduce sum f32[", count, "]")));
      EXPECT_LT(out.took, kNoticed);
    }
  }
}

TEST(UnderWayFailure, ARankThatDoesNotComeIsNamed) {
  const LocalOptions options{.deadline = 200ms, .stuck = {}};
  for (const std::int64_t count : {5, 6000}) {
    Cemetery cemetery;
    const Outcome out = outcome_of(
        3,
        [&](Communicator& world) {
          world.set_step(7);
          FailingCall a(world, sum_of(count, "a"), cemetery);
          world.wait(a.ticket);
          if (world.rank() == 2) std::this_thread::sleep_for(600ms);
          FailingCall b(world, sum_of(count, "b"), cemetery),
              c(world, sum_of(count, "c"), cemetery);
          world.wait(c.ticket);
        },
        options);
    SCOPED_TRACE(out.message);
    EXPECT_EQ(out.fault, Fault::Peer);
    EXPECT_TRUE(has(out.message, text("has waited 0.2 s in step 7 at all_reduce sum f32[", count,
                                      "] 'b' (number 2 of group world (ranks 0, 1, 2))")));
    EXPECT_TRUE(has(out.message,
                    "not arrived: rank 2 (in step 7 after all_reduce 'a' (number 1 of world)); "
                    "arrived: ranks 0, 1"));
    EXPECT_LT(out.took, kNoticed);
  }
}

/// One that starts and does not wait is awaited as well: its share of a large call is missing.
TEST(UnderWayFailure, ARankThatDoesNotGoOnIsNamed) {
  const LocalOptions options{.deadline = 200ms, .stuck = {}};
  Cemetery cemetery;
  std::atomic<int> first{0};
  const Outcome out = outcome_of(
      3,
      [&](Communicator& world) {
        if (world.rank() != 2) await(first, 1);
        FailingCall a(world, sum_of(6000, "a"), cemetery), b(world, sum_of(6000, "b"), cemetery);
        ++first;
        if (world.rank() == 2) std::this_thread::sleep_for(600ms);
        world.wait(b.ticket);
      },
      options);
  SCOPED_TRACE(out.message);
  EXPECT_TRUE(has(out.message, "at all_reduce sum f32[6000] 'a' (number 1 of group world"));
  EXPECT_TRUE(has(out.message,
                  "not arrived: rank 2 (before the first step after all_reduce 'b' (number 2 of "
                  "world)); arrived: ranks 0, 1"));
}

/// A ticket that is lost without a failure is a bug of the caller: found at its next call.
TEST(UnderWayFailure, ATicketThatIsDroppedIsNamed) {
  for (const std::int64_t count : {5, 6000}) {
    Cemetery cemetery;
    const Outcome out = outcome_of(3, [&](Communicator& world) {
      for (int step = 0;; ++step) {
        FailingCall a(world, sum_of(count, "a"), cemetery), b(world, sum_of(count, "b"), cemetery);
        if (step == 3 && world.rank() == 1) continue;
        world.wait(b.ticket);
        world.wait(a.ticket);
      }
    });
    SCOPED_TRACE(out.message);
    EXPECT_EQ(out.fault, Fault::Internal);
    EXPECT_TRUE(has(out.message, text("a ticket was dropped before its wait: all_reduce sum f32[",
                                      count, "] (number 8 of group world (ranks 0, 1, 2))")));
    EXPECT_TRUE(has(out.seen[0], "rank 1 of 3 failed before the first step at all_reduce 'a'"))
        << out.seen[0];
  }
}

/// ... or by those who wait for it, when it has ended.
TEST(UnderWayFailure, ATicketThatIsDroppedByARankThatEnds) {
  Cemetery cemetery;
  std::atomic<int> first{0};
  const Outcome out = outcome_of(2, [&](Communicator& world) {
    if (world.rank() == 0) await(first, 1);
    FailingCall a(world, sum_of(6000, "a"), cemetery);
    ++first;
    if (world.rank() == 0) world.wait(a.ticket);
  });
  EXPECT_TRUE(has(out.message, "for rank 1, which has ended")) << out.message;
}

}  // namespace
}  // namespace tessera
