/// Collectives of which only rows travel that are of use. The same tests for every backend.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "comm/backend.h"
#include "tessera/base/error.h"
#include "tessera/comm/backend/work.h"
#include "tessera/comm/communicator.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

struct RowsCase {
  Collective c;
  std::vector<std::int32_t> ids;
  std::vector<Bytes> operands;  // by member

  RowsCase(Collective collective, int members, std::int64_t choices, std::int64_t per_member,
           std::uint32_t seed)
      : c(std::move(collective)) {
    const std::int64_t count = c.whole[0] * c.whole[1];
    c.rows = {choices, per_member, count};
    std::mt19937 random(seed);
    // Some are nobody's.
    std::uniform_int_distribution<std::int32_t> id(-1,
                                                   static_cast<std::int32_t>(members * per_member));
    for (std::int64_t i = 0; i < count * choices; ++i) ids.push_back(id(random));
    for (int r = 0; r < members; ++r) {
      Bytes& mine = operands.emplace_back(static_cast<std::size_t>(in_bytes(c, members)));
      const auto bytes = static_cast<std::size_t>(size_of(c.dtype));
      for (std::size_t i = 0; i + bytes <= mine.size(); i += bytes) {
        const float value = static_cast<float>(random() % 20001) / 7 - 1400.1F;  // never 0
        const std::uint16_t narrow = to_bf16(value);
        if (c.dtype == DType::BF16)
          std::memcpy(&mine[i], &narrow, bytes);
        else
          std::memcpy(&mine[i], &value, bytes);
      }
    }
  }

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(c.whole.numel() / c.rows.count * size_of(c.dtype));
  }
  bool has(std::int64_t row, int member) const {
    return c.rows.has(&ids[static_cast<std::size_t>(row * c.rows.choices)], member);
  }

  /// By calls without choices: rows that are of no use are zeros before a sum, or behind a gather.
  Bytes expected(int me) const {
    const int members = static_cast<int>(operands.size());
    Collective all = c;
    all.rows = {};
    std::vector<Bytes> ins = operands;
    const bool sums = c.kind == CollectiveKind::ReduceScatter;
    for (int r = 0; r < members && sums; ++r)
      for (std::int64_t row = 0; row < c.rows.count; ++row)
        if (!has(row, r))
          std::fill_n(
              &ins[static_cast<std::size_t>(r)][static_cast<std::size_t>(row) * row_bytes()],
              row_bytes(), std::byte{0});
    std::vector<const void*> pointers;
    for (const Bytes& in : ins) pointers.push_back(in.data());
    Bytes out(static_cast<std::size_t>(out_bytes(c, members)));
    backend::work(all, me, pointers, out.data(), nullptr);
    const std::int64_t chunk = (c.whole[0] + members - 1) / members * c.whole[1];
    for (std::int64_t row = 0; row < c.rows.count && !sums; ++row)
      if (row / chunk != me && !has(row, me))
        std::fill_n(&out[static_cast<std::size_t>(row) * row_bytes()], row_bytes(), std::byte{0});
    return out;
  }

  std::int64_t sent(int me) const {
    const int members = static_cast<int>(operands.size());
    const std::int64_t chunk = (c.whole[0] + members - 1) / members * c.whole[1];
    std::int64_t rows = 0;
    for (std::int64_t row = 0; row < c.rows.count; ++row) {
      const auto owner = static_cast<int>(row / chunk);
      for (int j = 0; j < members; ++j) {
        if (j == owner || !has(row, j)) continue;
        rows += (c.kind == CollectiveKind::AllGather ? owner : j) == me ? 1 : 0;
      }
    }
    return rows * static_cast<std::int64_t>(row_bytes());
  }
};

void expect_right(Communicator& world, const RowsCase& one) {
  const auto me = static_cast<std::size_t>(world.rank());
  Bytes out(static_cast<std::size_t>(out_bytes(one.c, world.size())), std::byte{0x5a});
  const Bytes in = one.operands[me];
  const Count before = world.counts()[static_cast<std::size_t>(one.c.kind)];
  world.run(one.c, in.data(), out.data(), one.ids.data());
  const Bytes right = one.expected(world.rank());
  const std::int64_t chunk = (one.c.whole[0] + world.size() - 1) / world.size();
  // Of a last chunk that is shorter than the others the rest is not written.
  const std::int64_t valid =
      one.c.kind == CollectiveKind::AllGather
          ? one.c.whole.numel()
          : std::clamp<std::int64_t>(one.c.whole[0] - chunk * world.rank(), 0, chunk) *
                (one.c.whole.numel() / one.c.whole[0]);
  EXPECT_EQ(
      std::memcmp(out.data(), right.data(), static_cast<std::size_t>(valid * size_of(one.c.dtype))),
      0)
      << text(one.c, " on rank ", world.rank());
  const Count after = world.counts()[static_cast<std::size_t>(one.c.kind)];
  EXPECT_EQ(after.bytes - before.bytes, one.sent(world.rank())) << text(one.c);
  EXPECT_LE(one.sent(world.rank()), bytes_sent(one.c, world.size()));
}

TEST(ChosenRows, AreTheSameNumbersAsAllRows) {
  for (const int n : worlds()) {
    SCOPED_TRACE(n);
    run_world(n, [&](Communicator& world) {
      std::uint32_t seed = 1;
      for (const Shape& whole : {Shape{8, 3, 4}, Shape{5, 2, 3}, Shape{24, 8, 40},
                                 Shape{17, 33, 300}, Shape{8, 2, 1}, Shape{4, 1, 100'000}})
        for (const DType dtype : {DType::F32, DType::BF16})
          for (const std::int64_t choices : {1, 2, 5}) {
            const std::string name = "rows";
            ++seed;
            expect_right(world, RowsCase(Collective::all_gather(dtype, whole, 0, name), n, choices,
                                         2, seed));
            expect_right(world,
                         RowsCase(Collective::reduce_scatter(dtype, whole, 0, Monoid::Sum, name), n,
                                  choices, 3, seed));
          }
    });
  }
}

/// No row for some members, and all for one.
TEST(ChosenRows, MayBeNoneOrAll) {
  for (const int n : worlds()) {
    run_world(n, [&](Communicator& world) {
      for (const std::int32_t id : {-1, 0, n - 1}) {
        RowsCase one(Collective::all_gather(DType::F32, {8 * n, 2, 300}, 0, "rows"), n, 1, 1, 5);
        RowsCase two(
            Collective::reduce_scatter(DType::F32, {8 * n, 2, 300}, 0, Monoid::Sum, "rows"), n, 1,
            1, 5);
        std::ranges::fill(one.ids, id);
        std::ranges::fill(two.ids, id);
        expect_right(world, one);
        expect_right(world, two);
      }
    });
  }
}

TEST(ChosenRows, SeveralAreUnderWay) {
  for (const int n : worlds()) {
    run_world(n, [&](Communicator& world) {
      std::vector<RowsCase> cases;
      for (std::uint32_t i = 0; i < 5; ++i)
        cases.emplace_back(Collective::all_gather(DType::F32, {4 * n, 5, 200}, 0, "rows"), n, 2, 2,
                           i);
      std::vector<Bytes> outs;
      std::vector<Ticket> tickets;
      for (const RowsCase& one : cases) outs.emplace_back(out_bytes(one.c, n));
      for (std::size_t i = 0; i < cases.size(); ++i)
        tickets.push_back(world.start(
            cases[i].c, cases[i].operands[static_cast<std::size_t>(world.rank())].data(),
            outs[i].data(), cases[i].ids.data()));
      for (const std::size_t i : {3u, 0u, 4u, 1u, 2u}) world.wait(tickets[i]);
      for (std::size_t i = 0; i < cases.size(); ++i)
        EXPECT_TRUE(outs[i] == cases[i].expected(world.rank())) << i;
    });
  }
}

TEST(ChosenRows, OtherCallsHaveNone) {
  Collective c = Collective::all_reduce(DType::F32, {8, 2}, Monoid::Sum, "x");
  c.rows = {1, 1, 8};
  EXPECT_THROW(validate(c, 2), Broken);
  c = Collective::all_gather(DType::F32, {2, 8}, 1, "x");
  c.rows = {1, 1, 2};
  EXPECT_THROW(validate(c, 2), Broken);
  c = Collective::reduce_scatter(DType::F32, {8, 2}, 0, Monoid::Max, "x");
  c.rows = {1, 1, 8};
  EXPECT_THROW(validate(c, 2), Broken);
}

}  // namespace
}  // namespace tessera
