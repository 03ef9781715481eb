/// Several collectives under way: any order of waits, more than there may be, groups that cross.
/// The same tests for every backend.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/backend.h"
#include "tessera/base/error.h"
#include "tessera/comm/backend/work.h"
#include "tessera/comm/communicator.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

/// What member `rank` brings to call `id`: numbers whose sums depend on their order.
Bytes operand(const Collective& c, int ranks, int rank, int id) {
  Bytes out(static_cast<std::size_t>(in_bytes(c, ranks)));
  for (std::size_t i = 0; i * 4 + 4 <= out.size(); ++i) {
    const std::uint64_t bits =
        (i * 2654435761u + static_cast<std::uint64_t>(rank * 31 + id) * 40503u) % 65521;
    const float value = static_cast<float>(bits) / 7 * (bits % 3 == 0 ? 1e6F : -1e-3F);
    std::memcpy(out.data() + 4 * i, &value, 4);
  }
  return out;
}

/// One call of this rank: its memory, its ticket, and what must come of it.
struct Call {
  Call(Communicator& comm, Collective what, bool in_its_place, int id)
      : c(std::move(what)), comm(comm) {
    const int n = comm.size(), me = comm.rank();
    out.resize(static_cast<std::size_t>(out_bytes(c, n)), std::byte{0x5a});
    expected = out;
    std::vector<Bytes> all;
    std::vector<const void*> ins;
    for (int r = 0; r < n; ++r) all.push_back(operand(c, n, r, id));
    for (const Bytes& bytes : all) ins.push_back(bytes.data());
    backend::work(c, me, ins, expected.data(), nullptr);
    in = all[static_cast<std::size_t>(me)];
    from = in.data();
    if (!in_its_place) return;
    if (c.kind == CollectiveKind::AllReduce || c.kind == CollectiveKind::Broadcast)
      from = out.data();
    if (c.kind == CollectiveKind::AllGather && c.gather == 0) {
      const std::size_t at = in.size() * static_cast<std::size_t>(me);
      if (at + in.size() <= out.size()) from = out.data() + at;  // not where the chunk is padded
    }
    if (from != in.data()) std::copy(in.begin(), in.end(), from);
  }

  void start() { ticket = comm.start(c, from, out.data()); }
  void wait() {
    comm.wait(ticket);
    EXPECT_TRUE(out == expected) << text(c, " on rank ", comm.rank(), " of ", comm.group());
    std::fill(in.begin(), in.end(), std::byte{0xee});
    std::fill(out.begin(), out.end(), std::byte{0xee});
  }

  Collective c;
  Communicator& comm;
  Bytes in, out, expected;
  std::byte* from;
  Ticket ticket;
};

Collective sum(std::int64_t count, const char* name = "x") {
  return Collective::all_reduce(DType::F32, {count}, Monoid::Sum, name);
}

// Copied at the start, on each backend and on one of them; large.
constexpr std::array<std::int64_t, 3> kSizes = {7, 300, 5000};

TEST(UnderWay, WaitsInAnyOrderAndMoreStartsThanThereArePlaces) {
  const int n = worlds().back();
  const auto orders = {"forth", "back", "only the last"};
  for (const std::int64_t count : kSizes) {
    for (const int calls : {3, Communicator::kInFlight + 1, 20}) {
      for (const std::string order : orders) {
        SCOPED_TRACE(text(calls, " calls of ", count, " elements, waits ", order));
        run_world(n, [&](Communicator& world) {
          std::vector<std::unique_ptr<Call>> under_way;
          for (int i = 0; i < calls; ++i) {
            under_way.push_back(std::make_unique<Call>(world, sum(count + i), i % 2 == 1, i));
            under_way.back()->start();
          }
          if (order != "forth") std::reverse(under_way.begin(), under_way.end());
          for (const auto& call : under_way) call->wait();
        });
      }
    }
  }
}

/// A rank that comes early goes on: it gives the others what they wait for before they start.
TEST(UnderWay, AStartDoesNotWaitForTheOthers) {
  if (worlds().back() < 2) GTEST_SKIP() << "needs 2 ranks";
  for (const std::int64_t count : kSizes) {
    run_world(2, [&](Communicator& world) {
      float token = 1;
      Call a(world, sum(count), false, 1), b(world, sum(count), true, 2);
      if (world.rank() == 0) {
        a.start(), b.start();
        world.run(Collective::send(DType::F32, {}, 1, "go"), &token, nullptr);
      } else {
        world.run(Collective::recv(DType::F32, {}, 0, "go"), nullptr, &token);
        a.start(), b.start();
      }
      b.wait(), a.wait();
    });
  }
}

/// Whatever a rank waits for, it takes part in what it has started: another may wait for that.
TEST(UnderWay, RanksThatWaitForDifferentThings) {
  if (worlds().back() < 2) GTEST_SKIP() << "needs 2 ranks";
  for (const std::int64_t count : kSizes) {
    run_world(2, [&](Communicator& world) {
      const auto one = world.join(Group{"one", world.group().ranks});
      const auto other = world.join(Group{"other", world.group().ranks});
      for (int round = 0; round < 5; ++round) {
        Call a(*one, sum(count), false, 1), b(*other, sum(count + 1), true, 2);
        a.start(), b.start();
        if (world.rank() == 0) {
          a.wait(), b.wait();
        } else {
          b.wait(), a.wait();
        }
        float token = 1;
        Call c(world, sum(count), false, 3);
        c.start();
        if (world.rank() == 0) {
          world.run(Collective::recv(DType::F32, {}, 1, "go"), nullptr, &token);
          c.wait();
        } else {
          c.wait();
          world.run(Collective::send(DType::F32, {}, 0, "go"), &token, nullptr);
        }
      }
    });
  }
}

TEST(UnderWay, ATicketOfACallThatHasEndedReturnsAtOnce) {
  run_world(worlds().back(), [&](Communicator& world) {
    Call a(world, sum(5000), false, 1), b(world, sum(7), false, 2);
    a.start(), b.start();
    b.wait();
    EXPECT_TRUE(a.out == a.expected);
    a.wait();
    EXPECT_THROW(world.wait(a.ticket), Broken);
  });
}

/// Joined twice, a group is one: the calls of both are of one order.
TEST(UnderWay, TwoEndsOfOneGroup) {
  run_world(worlds().back(), [&](Communicator& world) {
    const auto a = world.join(Group{"twice", world.group().ranks});
    const auto b = world.join(Group{"twice", world.group().ranks});
    for (int round = 0; round < 10; ++round) {
      Call first(*a, sum(5000), false, 1), second(*b, sum(5001), true, 2),
          third(*a, sum(7), false, 3);
      first.start(), second.start(), third.start();
      second.wait(), third.wait(), first.wait();
    }
  });
}

using Random = std::mt19937;

int below(Random& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

Collective any_collective(Random& random, int ranks) {
  const std::int64_t rows = 1 + below(random, 9);
  const int size = below(random, 10);
  const std::int64_t columns =
      size < 5 ? 1 + below(random, 4) : (size < 9 ? 1 + below(random, 700) : 5000);
  const Shape shape = {rows, columns};
  const int dim = below(random, 2);
  switch (below(random, 6)) {
    case 0: return Collective::all_reduce(DType::F32, shape, Monoid::Sum, "reduce");
    case 1: return Collective::all_gather(DType::F32, shape, dim, "gather");
    case 2: return Collective::reduce_scatter(DType::F32, shape, dim, Monoid::Sum, "scatter");
    case 3: return Collective::all_to_all(DType::F32, shape, dim, 1 - dim, "exchange");
    case 4: return Collective::broadcast(DType::F32, shape, below(random, ranks), "broadcast");
    default: return Collective::barrier("barrier");
  }
}

/// All ranks draw the same calls from `shared`; when each waits, and how long it dawdles, it draws
/// for itself.
void random_calls(Communicator& world, unsigned seed, bool delays) {
  const int n = world.size();
  Random shared(seed), own(seed * 1000 + static_cast<unsigned>(world.rank()));
  std::vector<Group> groups = {{"all", {}}, {"front", {}}, {"ends", {0, n - 1}}, {"back", {}}};
  for (int r = 0; r < n; ++r) groups[0].ranks.push_back(r);
  for (int r = 0; r < n - 1; ++r) groups[1].ranks.push_back(r);
  for (int r = n - 1; r > 0; --r) groups[3].ranks.push_back(r);
  if (n == 1) groups.resize(1);
  // Named by ranks of this world, made of ranks of the program.
  std::vector<std::unique_ptr<Communicator>> joined;
  for (Group& group : groups) {
    const bool member = group.index_of(world.rank()) >= 0;
    for (int& rank : group.ranks) rank = world.group().ranks[static_cast<std::size_t>(rank)];
    joined.push_back(member ? world.join(group) : nullptr);
  }
  std::vector<std::unique_ptr<Call>> under_way;
  const auto wait_for_any = [&] {
    const auto i = static_cast<std::size_t>(below(own, static_cast<int>(under_way.size())));
    under_way[i]->wait();
    under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(i));
  };
  const int few_or_many = 5 + below(own, 100);
  for (int id = 0; id < 150; ++id) {
    const auto g = static_cast<std::size_t>(below(shared, static_cast<int>(groups.size())));
    const Collective c = any_collective(shared, groups[g].size());
    const bool in_its_place = below(shared, 2) == 0;
    if (delays && below(own, 20) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(below(own, 2000)));
    if (joined[g] == nullptr) continue;
    under_way.push_back(std::make_unique<Call>(*joined[g], c, in_its_place, id));
    under_way.back()->start();
    if (below(own, 8) == 0) under_way.back()->wait(), under_way.pop_back();
    while (below(own, few_or_many) < static_cast<int>(under_way.size())) wait_for_any();
  }
  while (!under_way.empty()) wait_for_any();
}

TEST(UnderWay, RandomCallsHaveTheBitsOfSerialOnes) {
  for (const int n : worlds()) {
    for (unsigned seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(text(n, " ranks, seed ", seed));
      run_world(n, [&](Communicator& world) { random_calls(world, seed, seed % 2 == 1); });
    }
  }
}

}  // namespace
}  // namespace tessera
