/// Sends and receives: they move without a wait, each channel for itself. The same tests for every
/// backend.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "comm/backend.h"
#include "comm/shared_mark.h"
#include "tessera/base/error.h"
#include "tessera/comm/communicator.h"

namespace tessera {
namespace {

constexpr int kInFlight = Communicator::kInFlight;

/// One end of a message, with memory of its own.
struct End {
  End(Communicator& comm, const Collective& what, float value)
      : c(what), value(value), data(static_cast<std::size_t>(what.whole.numel())), comm(comm) {
    const bool sends = c.kind == CollectiveKind::Send;
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = sends ? at(i) : -1;
    ticket = comm.start(c, data.data(), data.data());
  }
  void wait() {
    comm.wait(ticket);
    for (std::size_t i = 0; c.kind == CollectiveKind::Recv && i < data.size(); ++i)
      ASSERT_EQ(data[i], at(i)) << text(i, " of ", c, " of ", comm.group());
    std::fill(data.begin(), data.end(), -2.F);
  }
  float at(std::size_t i) const { return value + static_cast<float>(i % 1000) / 1024; }

  const Collective c;
  const float value;
  std::vector<float> data;
  Communicator& comm;
  Ticket ticket;
};

using Ends = std::deque<End>;

Collective send_to(int peer, std::int64_t count) {
  return Collective::send(DType::F32, {count}, peer, "activations");
}
Collective recv_from(int peer, std::int64_t count) {
  return Collective::recv(DType::F32, {count}, peer, "activations");
}
/// Nothing, tiny, copied on its way by some backends, several MB.
constexpr std::array<std::int64_t, 5> kMessageSizes = {0, 1, 700, 30'000, 1'500'001};

/// Two ranks with channels "a" and "b" of their own. Each tells the other beside comm how far it
/// is.
struct Pair {
  explicit Pair(Communicator& world)
      : world(world),
        a(world.join(Group{"a", world.group().ranks})),
        b(world.join(Group{"b", world.group().ranks})),
        mark(world) {}
  bool sends() const { return world.rank() == 0; }
  void tell() { mark.raise(), ++told; }
  void compute_until_told() { mark.compute_until(++told); }

  Communicator& world;
  std::unique_ptr<Communicator> a, b;
  SharedMark mark;
  int told = 0;  // by either
};

void run_pair(const std::function<void(Pair& pair, std::int64_t count)>& body) {
  if (worlds().back() < 2) GTEST_SKIP() << "needs 2 ranks";
  for (const std::int64_t count : kMessageSizes) {
    SCOPED_TRACE(text(count, " elements"));
    run_world(2, [&](Communicator& world) {
      Pair pair(world);
      for (int round = 0; round < 3; ++round) body(pair, count);
    });
  }
}

void start_three_sends(Pair& pair, std::int64_t count, Ends& ends) {
  ends.emplace_back(*pair.a, send_to(1, count), 1.F);
  ends.emplace_back(*pair.a, send_to(1, count + 1), 2.F);
  ends.emplace_back(*pair.b, send_to(1, count), 3.F);
}
void start_three_receives(Pair& pair, std::int64_t count, Ends& ends) {
  ends.emplace_back(*pair.b, recv_from(0, count), 3.F);
  ends.emplace_back(*pair.a, recv_from(0, count), 1.F);
  ends.emplace_back(*pair.a, recv_from(0, count + 1), 2.F);
}

/// The sender's waits end while the receiver computes.
TEST(Messages, ReceivesThatAreStartedAheadNeedNoWait) {
  run_pair([](Pair& pair, std::int64_t count) {
    Ends ends;
    if (pair.sends()) {
      pair.compute_until_told();
      start_three_sends(pair, count, ends);
      for (End& end : ends) end.wait();
      pair.tell();
    } else {
      start_three_receives(pair, count, ends);
      pair.tell();
      pair.compute_until_told();
      for (End& end : ends) end.wait();
    }
  });
}

/// The receiver's waits end while the sender computes.
TEST(Messages, SendsThatAreStartedAheadNeedNoWait) {
  run_pair([](Pair& pair, std::int64_t count) {
    Ends ends;
    if (pair.sends()) {
      start_three_sends(pair, count, ends);
      pair.tell();
      pair.compute_until_told();
      for (End& end : ends) end.wait();
    } else {
      pair.compute_until_told();
      start_three_receives(pair, count, ends);
      for (End& end : ends) end.wait();
      pair.tell();
    }
  });
}

/// A receiver that waits for something else takes in what it has asked for.
TEST(Messages, MoveWhileTheReceiverWaitsForSomethingElse) {
  run_pair([](Pair& pair, std::int64_t count) {
    Ends ends;
    float x = 1;
    const Collective sum = Collective::all_reduce(DType::F32, {}, Monoid::Sum, "loss");
    if (pair.sends()) {
      start_three_sends(pair, count, ends);
      for (End& end : ends) end.wait();
      pair.world.run(sum, &x, &x);
    } else {
      start_three_receives(pair, count, ends);
      pair.world.run(sum, &x, &x);
      for (End& end : ends) end.wait();
    }
    EXPECT_EQ(x, 2);
  });
}

/// Nor does a receiver that waits in one channel keep another one waiting.
TEST(Messages, ChannelsAreWaitedForInAnyOrder) {
  run_pair([](Pair& pair, std::int64_t count) {
    Ends a, b;
    if (pair.sends()) {
      b.emplace_back(*pair.b, send_to(1, count), 1.F);
      b.back().wait();
      a.emplace_back(*pair.a, send_to(1, count), 2.F);
      a.back().wait();
    } else {
      b.emplace_back(*pair.b, recv_from(0, count), 1.F);
      a.emplace_back(*pair.a, recv_from(0, count), 2.F);
      a.back().wait(), b.back().wait();
    }
  });
}

/// Each rank sends before it receives, and waits for that: as the two of a pipeline's stages may.
TEST(Messages, BothSendFirst) {
  run_pair([](Pair& pair, std::int64_t count) {
    const int peer = 1 - pair.world.rank();
    Ends ends;
    ends.emplace_back(*pair.a, recv_from(peer, count), 1.F);
    ends.emplace_back(*pair.a, send_to(peer, count), 1.F);
    ends[1].wait(), ends[0].wait();
  });
}

TEST(Messages, EndInTheOrderInWhichTheyWereStarted) {
  run_pair([](Pair& pair, std::int64_t count) {
    Ends ends;
    if (pair.sends()) {
      start_three_sends(pair, count, ends);
      for (const std::size_t i : {2U, 1U, 0U}) ends[i].wait();
    } else {
      start_three_receives(pair, count, ends);
      EXPECT_THROW(ends[2].wait(), Broken);
      for (End& end : ends) end.wait();
    }
  });
}

/// More sends wait for room; more receives are refused.
TEST(Messages, AtMostSoManyAreUnderWay) {
  run_pair([](Pair& pair, std::int64_t count) {
    constexpr int kMany = 2 * kInFlight + 3;
    Ends ends;
    if (pair.sends()) {
      for (int i = 0; i < kMany; ++i)
        ends.emplace_back(*pair.a, send_to(1, count), static_cast<float>(i));
      for (End& end : ends) end.wait();
      return;
    }
    int started = 0;
    while (started < kInFlight)
      ends.emplace_back(*pair.a, recv_from(0, count), static_cast<float>(started++));
    EXPECT_THROW(ends.emplace_back(*pair.a, recv_from(0, count), 0.F), Broken);
    while (!ends.empty()) {
      ends.front().wait();
      ends.pop_front();
      if (started < kMany)
        ends.emplace_back(*pair.a, recv_from(0, count), static_cast<float>(started++));
    }
  });
}

using Draws = std::mt19937;

/// 0 to n - 1.
int draw(Draws& draws, int n) { return static_cast<int>(draws() % static_cast<unsigned>(n)); }

/// What one rank has under way: of each channel the sends, of which any may be waited for, and the
/// receives, of which the first may.
struct Mine {
  using List = std::vector<std::unique_ptr<End>>;
  std::vector<List> sends, receives;  // by channel

  int count() const {
    std::size_t n = 0;
    for (const List& list : sends) n += list.size();
    for (const List& list : receives) n += list.size();
    return static_cast<int>(n);
  }
  void wait_for_one(List& list, std::size_t i) {
    list[i]->wait();
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void wait_for_any(Draws& own) {
    const int k = draw(own, static_cast<int>(sends.size()));
    List& sent = sends[static_cast<std::size_t>(k)];
    List& received = receives[static_cast<std::size_t>(k)];
    if (!sent.empty())
      wait_for_one(sent, static_cast<std::size_t>(draw(own, static_cast<int>(sent.size()))));
    if (!received.empty()) wait_for_one(received, 0);
  }
};

/// All ranks draw the same messages, and now and then a sum, from `shared`. What each does between
/// its ends of them, it draws for itself.
void random_messages(Communicator& world, unsigned seed) {
  const int n = world.size(), me = world.rank();
  constexpr int kChannels = 6;
  Draws shared(seed), own(seed * 1000 + static_cast<unsigned>(me));
  std::vector<std::unique_ptr<Communicator>> channels;
  std::vector<std::array<int, 2>> ranks;  // by channel
  for (int k = 0; k < kChannels; ++k) {
    const int from = draw(shared, n), to = (from + 1 + draw(shared, n - 1)) % n;
    ranks.push_back({from, to});
    const auto in_program = [&](int r) { return world.group().ranks[static_cast<std::size_t>(r)]; };
    const Group group{text("channel ", k), {in_program(from), in_program(to)}};
    channels.push_back(me == from || me == to ? world.join(group) : nullptr);
  }
  Mine all;
  all.sends.resize(kChannels), all.receives.resize(kChannels);
  for (int id = 0; id < 300; ++id) {
    const auto k = static_cast<std::size_t>(draw(shared, kChannels));
    const int size = draw(shared, 20);
    const std::int64_t count =
        size == 0 ? 100'000 : (size < 8 ? draw(shared, 5) : 10 << (size % 10));
    if (draw(shared, 20) == 0) {
      std::vector<float> x(static_cast<std::size_t>(count), 1);
      world.run(Collective::all_reduce(DType::F32, {count}, Monoid::Sum, "sum"), x.data(),
                x.data());
      EXPECT_TRUE(std::ranges::all_of(x, [&](float y) { return y == static_cast<float>(n); }));
    }
    if (draw(own, 10) == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw(own, 500)));
    if (draw(own, 2) == 0) world.alive();
    const auto value = static_cast<float>(id);
    if (me == ranks[k][0]) {
      all.sends[k].push_back(std::make_unique<End>(*channels[k], send_to(1, count), value));
    } else if (me == ranks[k][1]) {
      auto& list = all.receives[k];
      if (list.size() == kInFlight) all.wait_for_one(list, 0);
      list.push_back(std::make_unique<End>(*channels[k], recv_from(0, count), value));
    }
    for (int i = draw(own, 4); i > 0; --i) all.wait_for_any(own);
  }
  while (all.count() > 0) all.wait_for_any(own);
}

TEST(Messages, RandomOnesArrive) {
  for (const int n : worlds()) {
    if (n == 1) continue;
    for (unsigned seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(text(n, " ranks, seed ", seed));
      run_world(n, [&](Communicator& world) { random_messages(world, seed); });
    }
  }
}

}  // namespace
}  // namespace tessera
