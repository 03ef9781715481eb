/// Processes give the bits that threads give, for every kind of collective.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "comm/backend.h"
#include "tessera/base/text.h"
#include "tessera/comm/local.h"
#include "tessera/tensor/dtype.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

/// Any bits, but no exponent of all ones: which of two NaNs is left of a sum is up to the compiler.
Bytes operand(std::int64_t bytes, int rank, DType dtype) {
  Bytes out(static_cast<std::size_t>(bytes));
  std::uint64_t state = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(rank + 1);
  for (std::byte& b : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::byte>(state >> 56);
  }
  const auto size = static_cast<std::size_t>(size_of(dtype));
  for (std::size_t last = size - 1; last < out.size(); last += size) {
    if (dtype == DType::Bool) {
      out[last] &= std::byte{1};
    } else {
      out[last] &= std::byte{0xbf};  // the exponent's highest bit
    }
  }
  return out;
}

/// What rank `rank` has after the call; what is not written stays as it was.
Bytes result(Communicator& world, const Collective& c) {
  const Bytes in = operand(in_bytes(c, world.size()), world.rank(), c.dtype);
  Bytes out(static_cast<std::size_t>(out_bytes(c, world.size())), std::byte{0x5a});
  world.run(c, in.data(), out.data());
  return out;
}

void expect_same(int n, const Collective& c) {
  std::vector<Bytes> expected(static_cast<std::size_t>(n));
  run_ranks(n, [&](Communicator& world) {
    expected[static_cast<std::size_t>(world.rank())] = result(world, c);
  });
  run_world(n, [&](Communicator& world) {
    EXPECT_TRUE(result(world, c) == expected[static_cast<std::size_t>(world.rank())])
        << text(c, " on rank ", world.rank(), " of ", n);
  });
}

struct WorldCase {
  Shape shape;
  std::vector<DType> dtypes;
};
const std::vector<DType> kAll = {DType::F32, DType::F64, DType::BF16, DType::F16,
                                 DType::I32, DType::I64, DType::Bool};

/// Copied with the letter, around that limit, uneven, nothing: in all dtypes. Segments that are one
/// piece, many pieces, more than can be staged at once: in one.
std::vector<WorldCase> cases(const std::vector<DType>& all) {
  return {{{7}, all},
          {{512}, all},
          {{513}, all},
          {{5, 103}, all},
          {{3, 1, 700}, all},
          {{33, 17, 9}, all},
          {{0, 4}, all},
          {{13, 5, 7, 31}, {DType::F32}},
          {{2, 70'001}, {DType::F32}},
          {{70'001, 2}, {DType::F32}},
          {{301, 1001}, {DType::F32}}};
}

TEST(SameAsLocal, Reductions) {
  for (const int n : worlds()) {
    for (const auto& [shape, dtypes] : cases(kAll)) {
      for (const DType dtype : dtypes) {
        for (const Monoid monoid : {Monoid::Sum, Monoid::Max, Monoid::Min}) {
          if (dtype == DType::Bool && monoid == Monoid::Sum) continue;
          expect_same(n, Collective::all_reduce(dtype, shape, monoid, "x"));
          for (int dim = 0; dim < shape.ndim(); ++dim)
            expect_same(n, Collective::reduce_scatter(dtype, shape, dim, monoid, "x"));
        }
      }
    }
  }
}

TEST(SameAsLocal, Moves) {
  for (const int n : worlds()) {
    for (const auto& [shape, dtypes] : cases(kAll)) {
      for (const DType dtype : dtypes) {
        for (int dim = 0; dim < shape.ndim(); ++dim) {
          expect_same(n, Collective::all_gather(dtype, shape, dim, "x"));
          for (int other = 0; other < shape.ndim(); ++other) {
            if (other != dim) expect_same(n, Collective::all_to_all(dtype, shape, dim, other, "x"));
          }
        }
        for (int root = 0; root < n; ++root)
          expect_same(n, Collective::broadcast(dtype, shape, root, "x"));
      }
    }
  }
}

/// In place, as gradients are reduced; groups that overlap; sends of two groups whose receives end
/// in another order.
TEST(SameAsLocal, Groups) {
  const int n = worlds().back();
  if (n < 3) GTEST_SKIP() << "needs 3 ranks";
  const auto body = [n](Communicator& world) {
    std::string seen;
    const auto note = [&](const Bytes& bytes) {
      std::uint64_t h = 0;
      for (const std::byte b : bytes) h = h * 1099511628211u + static_cast<std::uint64_t>(b);
      seen += text(h, " ");
    };
    const std::vector<Group> groups = {
        {"front", {0, 1, 2}}, {"back", {2, 1}}, {"ends", {0, n - 1}}};
    std::vector<std::unique_ptr<Communicator>> joined;
    for (const Group& group : groups) {
      if (group.index_of(world.rank()) >= 0) joined.push_back(world.join(group));
    }
    for (const std::int64_t count : {10, 100'000}) {
      for (const auto& comm : joined) {
        const auto c = Collective::all_reduce(DType::F32, {count}, Monoid::Sum, "x");
        Bytes x = operand(in_bytes(c, 1), world.rank(), c.dtype);
        comm->run(c, x.data(), x.data());
        note(x);
      }
      const auto send = Collective::send(DType::F32, {count}, 1, "s");
      const auto recv = Collective::recv(DType::F32, {count}, 0, "r");
      const Group two{"two", {0, 1}}, pair{"pair", {0, 1}};
      if (world.rank() > 1) continue;
      const auto a = world.join(two), b = world.join(pair);
      Bytes first = operand(count * 4, 1, DType::F32), second = operand(count * 4, 2, DType::F32);
      if (world.rank() == 0) {
        Ticket ta = a->start(send, first.data(), nullptr);
        Ticket tb = b->start(send, second.data(), nullptr);
        a->wait(ta), b->wait(tb);
      } else {
        Bytes x(first.size()), y(first.size());
        Ticket ta = a->start(recv, nullptr, x.data());
        Ticket tb = b->start(recv, nullptr, y.data());
        b->wait(tb), a->wait(ta);
        EXPECT_TRUE(x == first && y == second);
      }
    }
    return seen;
  };
  std::vector<std::string> expected(static_cast<std::size_t>(n));
  run_ranks(n, [&](Communicator& world) {
    expected[static_cast<std::size_t>(world.rank())] = body(world);
  });
  run_world(n, [&](Communicator& world) {
    EXPECT_EQ(body(world), expected[static_cast<std::size_t>(world.rank())]);
  });
}

/// Processes that no launcher has bound, all on this host.
TEST(SameAsLocal, CoresOfEachRank) {
  int expected = -1;
  run_ranks(worlds().back(), [&](Communicator& world) {
    if (world.rank() == 0) expected = world.cores_per_rank();
  });
  run_world(worlds().back(),
            [&](Communicator& world) { EXPECT_EQ(world.cores_per_rank(), expected); });
}

/// Twice the same group is the same group: its calls are counted on.
TEST(SameAsLocal, AGroupJoinedTwice) {
  run_world(worlds().back(), [](Communicator& world) {
    for (int round = 0; round < 3; ++round) {
      const auto again = world.join(Group{"again", world.group().ranks});
      std::int64_t x = 1;
      again->run(Collective::all_reduce(DType::I64, {}, Monoid::Sum, "x"), &x, &x);
      EXPECT_EQ(x, world.size());
      EXPECT_FALSE(world.peer_failed());
    }
  });
}

}  // namespace
}  // namespace tessera
