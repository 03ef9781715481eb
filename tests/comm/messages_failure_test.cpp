/// Ranks that fail, disagree or do not come while messages are under way.

#include <gtest/gtest.h>

#include <algorithm>
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

/// One end of a message, whose memory dies with it, after its ticket.
struct FailingEnd {
  FailingEnd(Communicator& comm, const Collective& what, Cemetery& cemetery)
      : comm(comm), c(what), memory(cemetery, std::max<std::int64_t>(c.whole.numel(), 1)) {
    if (c.kind == CollectiveKind::Send) memory.data()[0] = 1;
    ticket = comm.start(c, memory.data(), memory.data());
  }
  void wait() { comm.wait(ticket); }
  Communicator& comm;
  Collective c;
  Buffer memory;
  Ticket ticket;
};

Collective send_of(int peer, std::int64_t count, const char* name = "x") {
  return Collective::send(DType::F32, {count}, peer, name);
}
Collective recv_of(int peer, std::int64_t count, const char* name = "x") {
  return Collective::recv(DType::F32, {count}, peer, name);
}

/// Messages to and from the next rank on two channels, many under way, until a rank fails.
void exchange_until_one_fails(Communicator& world, unsigned round, Cemetery& cemetery,
                              std::atomic<int>& left) {
  using List = std::vector<std::unique_ptr<FailingEnd>>;
  const int n = world.size(), next = (world.rank() + 1) % n, last = (world.rank() + n - 1) % n;
  std::mt19937 own(round * 100 + static_cast<unsigned>(world.rank()));
  const auto other = world.join(Group{"other", world.group().ranks});
  Communicator* const channels[] = {&world, other.get()};
  const auto live = [&] {
    if (--left == 0) fail(Fault::Data, "enough");
  };
  const std::int64_t counts[] = {3, 60'000};
  List sends[2], receives[2];
  for (std::size_t id = 0;; ++id) {
    const std::size_t k = id / 3 % 2;
    const std::int64_t count = counts[id / 5 % 2];
    const auto start = [&](List& list, const Collective& c) {
      live();
      list.push_back(std::make_unique<FailingEnd>(*channels[k], c, cemetery));
    };
    const auto end = [&](List& list) {
      live();
      list.front()->wait();
      list.erase(list.begin());
    };
    const bool ahead = id % 4 != 0;
    if (!ahead) start(sends[k], send_of(next, count));
    start(receives[k], recv_of(last, count));
    if (ahead) start(sends[k], send_of(next, count));
    for (List* lists : {sends, receives}) {
      while (lists[k].size() > own() % Communicator::kInFlight) end(lists[k]);
    }
  }
}

/// Fails after any number of starts and waits of all ranks; the others are in any of them then.
TEST(MessagesFailure, NobodyTouchesTheMemoryOfARankThatFailed) {
  for (unsigned round = 0; round < 300; ++round) {
    Cemetery cemetery;
    std::atomic<int> left{1 + static_cast<int>(round)};
    const int n = 2 + static_cast<int>(round % 3);
    const Outcome out = outcome_of(
        n, [&](Communicator& world) { exchange_until_one_fails(world, round, cemetery, left); });
    ASSERT_EQ(out.fault, Fault::Data) << out.message;
  }
}

/// One end has been started when its rank fails; the other comes later, or waits already.
TEST(MessagesFailure, ARankThatFailsWithAMessageUnderWay) {
  for (const bool sender_fails : {true, false}) {
    for (const bool other_waits : {true, false}) {
      Cemetery cemetery;
      std::atomic<int> started{0}, failed{0};
      const Outcome out = outcome_of(2, [&](Communicator& world) {
        world.set_step(4);
        const bool sends = world.rank() == 0, fails = sends == sender_fails;
        const auto call = [&] { return sends ? send_of(1, 50'000) : recv_of(0, 50'000); };
        if (fails) {
          try {
            FailingEnd end(world, call(), cemetery);
            FailingEnd more(world, call(), cemetery);
            ++started;
            fail(Fault::Numerics, "the loss is nan");
          } catch (...) {
            ++failed;
            throw;
          }
        }
        await(other_waits ? started : failed, 1);
        FailingEnd end(world, call(), cemetery);
        std::this_thread::sleep_for(5ms);
        end.wait();
        FailingEnd more(world, call(), cemetery), never(world, call(), cemetery);
        more.wait();
        never.wait();
      });
      SCOPED_TRACE(text(sender_fails ? "sender" : "receiver", " fails: ", out.message));
      EXPECT_LT(out.took, kNoticed);
      EXPECT_EQ(out.fault, Fault::Numerics);
      const std::string& seen = out.seen[sender_fails ? 1 : 0];
      EXPECT_TRUE(has(
          seen, text("rank ", sender_fails ? 0 : 1, " of 2 failed in step 4 after ",
                     sender_fails ? "send" : "recv", " 'x' (number 2 of world): the loss is nan")))
          << seen;
    }
  }
}

/// Whoever of the two comes later tells it.
TEST(MessagesFailure, AMessageOfAnotherTypeIsNamed) {
  for (const int first : {0, 1, 2}) {
    Cemetery cemetery;
    std::atomic<int> started{0};
    const Outcome out = outcome_of(2, [&](Communicator& world) {
      const bool sends = world.rank() == 0;
      if (first != 2 && world.rank() != first) await(started, 1);
      FailingEnd end(world, sends ? send_of(1, 4) : recv_of(0, 5), cemetery);
      ++started;
      end.wait();
    });
    SCOPED_TRACE(out.message);
    EXPECT_EQ(out.fault, Fault::Peer);
    EXPECT_TRUE(has(out.message, "found that rank 0 sends f32[4] as number 1 of group world"));
    EXPECT_TRUE(has(out.message, "where rank 1 receives f32[5] for 'x'"));
    EXPECT_LT(out.took, kNoticed);
  }
}

TEST(MessagesFailure, AnEndThatDoesNotComeIsNamed) {
  const LocalOptions options{.deadline = 200ms, .stuck = {}};
  for (const bool sends : {true, false}) {
    Cemetery cemetery;
    const Outcome out = outcome_of(
        2,
        [&](Communicator& world) {
          world.set_step(7);
          if (world.rank() == 1) return std::this_thread::sleep_for(600ms);
          const auto edge = world.join(Group{"edge", {0, 1}});
          FailingEnd end(*edge, sends ? send_of(1, 5000) : recv_of(1, 5000), cemetery);
          end.wait();
        },
        options);
    SCOPED_TRACE(out.message);
    EXPECT_EQ(out.fault, Fault::Peer);
    EXPECT_TRUE(has(out.message, "has waited 0.2 s in step 7 at "));
    EXPECT_TRUE(has(out.message,
                    "member 1 'x' (number 1 of group edge (ranks 0, 1)); not arrived: "
                    "rank 1 (in step 7, before any call); arrived: rank 0"));
    EXPECT_LT(out.took, kNoticed);
  }
}

TEST(MessagesFailure, ARankThatHasEndedIsNotWaitedFor) {
  for (const bool sends : {true, false}) {
    Cemetery cemetery;
    const Outcome out = outcome_of(2, [&](Communicator& world) {
      if (world.rank() == 1) return;
      FailingEnd end(world, sends ? send_of(1, 5000) : recv_of(1, 5000), cemetery);
      end.wait();
    });
    EXPECT_TRUE(has(out.message, "for rank 1, which has ended")) << out.message;
  }
}

}  // namespace
}  // namespace tessera
