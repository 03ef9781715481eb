/// Collectives against plain loops over the ranks' tensors: the same tests for every backend.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/backend.h"
#include "tessera/base/text.h"
#include "tessera/comm/communicator.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera {
namespace {

/// What rank `rank` brings: numbers of very different sizes, so that another order of sums gives
/// other bits.
template <typename T>
std::vector<T> values(int rank, std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t bits =
        (i * 2654435761u + static_cast<std::uint64_t>(rank) * 40503u) % 65521;
    if constexpr (std::is_floating_point_v<T>) {
      out[i] = static_cast<T>(bits) / T(7) * (bits % 3 == 0 ? T(1e6) : T(-1e-3));
    } else {
      out[i] = static_cast<T>(bits) - 30000;
    }
  }
  return out;
}

template <typename T>
T combined(Monoid monoid, T a, T b) {
  if (monoid == Monoid::Sum) return a + b;
  return monoid == Monoid::Max ? std::max(a, b) : std::min(a, b);
}

/// The left-to-right reduction over the ranks.
template <typename T>
std::vector<T> reduced(Monoid monoid, int n, std::int64_t count) {
  std::vector<T> out = values<T>(0, count);
  for (int r = 1; r < n; ++r) {
    const std::vector<T> next = values<T>(r, count);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = combined(monoid, out[i], next[i]);
  }
  return out;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Empty; one; copied at the barrier (up to 1024 bytes), around that limit; odd; many blocks.
constexpr std::array<std::int64_t, 8> kCounts = {0, 1, 7, 128, 256, 257, 1001, 100'003};

template <typename T>
void all_reduce_all() {
  for (const int n : worlds()) {
    for (const std::int64_t count : kCounts) {
      for (const Monoid monoid : {Monoid::Sum, Monoid::Max, Monoid::Min}) {
        SCOPED_TRACE(text(n, " ranks, ", count, " elements"));
        const std::vector<T> expected = reduced<T>(monoid, n, count);
        const Collective c = Collective::all_reduce(dtype_of<T>(), {count}, monoid, "x");
        std::vector<int> wrong(static_cast<std::size_t>(n));
        run_world(n, [&](Communicator& world) {
          std::vector<T> in = values<T>(world.rank(), count), out(in.size());
          const std::vector<T> before = in;
          world.run(c, in.data(), out.data());
          bool ok = same_bits(out, expected) && same_bits(in, before);
          world.run(c, in.data(), in.data());  // in place
          ok = ok && same_bits(in, expected);
          wrong[static_cast<std::size_t>(world.rank())] = !ok;
        });
        EXPECT_EQ(wrong, std::vector<int>(static_cast<std::size_t>(n)));
      }
    }
  }
}

/// What rank `rank` brings, in 16 bits; the numbers of f16 stay finite.
HostTensor sixteen_bit(DType dtype, int rank, std::int64_t count) {
  const std::vector<float> wide = values<float>(rank, count);
  HostTensor out(dtype, {count});
  for (std::int64_t i = 0; i < count; ++i) out.set(i, wide[static_cast<std::size_t>(i)] * 1e-6);
  return out;
}

TEST(Backend, SixteenBitFloatsAreSummedInF32AndRoundedOnce) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const int n : worlds()) {
      for (const std::int64_t count : kCounts) {
        SCOPED_TRACE(text(dtype, ", ", n, " ranks, ", count, " elements"));
        HostTensor sum = sixteen_bit(dtype, 0, count).cast(DType::F32);
        for (int r = 1; r < n; ++r) {
          const HostTensor next = sixteen_bit(dtype, r, count);
          for (std::int64_t i = 0; i < count; ++i)
            sum.data<float>()[i] += static_cast<float>(next.at(i));
        }
        const HostTensor expected = sum.cast(dtype);
        std::vector<int> wrong(static_cast<std::size_t>(n));
        run_world(n, [&](Communicator& world) {
          HostTensor in = sixteen_bit(dtype, world.rank(), count);
          world.run(Collective::all_reduce(dtype, {count}, Monoid::Sum, "x"), in.bytes().data(),
                    in.bytes().data());
          wrong[static_cast<std::size_t>(world.rank())] =
              !std::equal(in.bytes().begin(), in.bytes().end(), expected.bytes().begin());
        });
        EXPECT_EQ(wrong, std::vector<int>(static_cast<std::size_t>(n)));
      }
    }
  }
}

TEST(Backend, AllReduceHasTheBitsOfSumsInRankOrder) {
  all_reduce_all<float>();
  all_reduce_all<double>();
  all_reduce_all<std::int32_t>();
  all_reduce_all<std::int64_t>();
}

TEST(Backend, BooleansAreJoinedByOrAndAnd) {
  run_world(3, [&](Communicator& world) {
    const std::array<std::uint8_t, 4> in = {0, 1, world.rank() == 1, world.rank() != 1};
    std::array<std::uint8_t, 4> any{}, all{};
    world.run(Collective::all_reduce(DType::Bool, {4}, Monoid::Max, "any"), in.data(), any.data());
    world.run(Collective::all_reduce(DType::Bool, {4}, Monoid::Min, "all"), in.data(), all.data());
    EXPECT_EQ(any, (std::array<std::uint8_t, 4>{0, 1, 1, 1}));
    EXPECT_EQ(all, (std::array<std::uint8_t, 4>{0, 1, 0, 0}));
  });
}

TEST(Backend, NotANumberWinsInMaxAndMin) {
  for (const Monoid monoid : {Monoid::Max, Monoid::Min}) {
    for (const int bad : {0, 1, 2}) {
      run_world(3, [&](Communicator& world) {
        double x = world.rank() == bad ? std::numeric_limits<double>::quiet_NaN() : world.rank();
        world.run(Collective::all_reduce(DType::F64, {}, monoid, "x"), &x, &x);
        EXPECT_NE(x, x);
      });
    }
  }
}

TEST(Backend, IntegersWrap) {
  run_world(2, [&](Communicator& world) {
    std::int32_t x = std::numeric_limits<std::int32_t>::max();
    world.run(Collective::all_reduce(DType::I32, {}, Monoid::Sum, "x"), &x, &x);
    EXPECT_EQ(x, -2);
  });
}

// ---- Collectives that cut a dim. The global tensor of i32 has its own index in every element.

/// Elements of `whole` whose coordinate on `dim` is in the chunk of rank `r`, in a tensor of the
/// chunk's padded size; -1 beyond the end.
std::vector<std::int32_t> chunk_of(const std::vector<std::int32_t>& whole, const Shape& shape,
                                   int dim, int n, int r) {
  const std::int64_t size = (shape[dim] + n - 1) / n;
  Shape part = shape;
  part[dim] = size;
  std::vector<std::int32_t> out;
  const Shape strides = shape.strides(), part_strides = part.strides();
  for (std::int64_t i = 0; i < part.numel(); ++i) {
    std::int64_t at = 0;
    bool inside = true;
    for (int d = 0; d < shape.ndim(); ++d) {
      std::int64_t k = i / part_strides[d] % part[d];
      if (d == dim) k += r * size;
      inside = inside && k < shape[d];
      at += k * strides[d];
    }
    out.push_back(inside ? whole[static_cast<std::size_t>(at)] : -1);
  }
  return out;
}

std::vector<std::int32_t> indices(std::int64_t count, std::int32_t first = 0) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + static_cast<std::int32_t>(i);
  return out;
}

// Even; uneven; fewer elements than ranks (empty chunks); inner and outer dims; nothing; large.
const std::vector<Shape> kShapes = {{8},       {5},          {3, 7, 2},   {4, 1, 6},
                                    {2, 0, 3}, {5, 9, 2, 3}, {40, 33, 17}};

TEST(Backend, AllGatherAndReduceScatterOnEveryDim) {
  for (const int n : worlds()) {
    for (const Shape& shape : kShapes) {
      for (int dim = 0; dim < shape.ndim(); ++dim) {
        SCOPED_TRACE(text(n, " ranks, ", shape, " on dim ", dim));
        const std::vector<std::int32_t> whole = indices(shape.numel());
        run_world(n, [&](Communicator& world) {
          const int r = world.rank();
          const std::vector<std::int32_t> mine = chunk_of(whole, shape, dim, n, r);
          std::vector<std::int32_t> out(whole.size(), -7);
          world.run(Collective::all_gather(DType::I32, shape, dim, "x"), mine.data(), out.data());
          EXPECT_EQ(out, whole);

          // Each rank brings the index plus its rank, so the sum is n index + 0 + 1 + ...
          std::vector<std::int32_t> sum = indices(shape.numel());
          for (std::int32_t& v : sum) v = n * v + n * (n - 1) / 2;
          const std::vector<std::int32_t> in = indices(shape.numel(), r);
          std::vector<std::int32_t> part(mine.size(), -1);  // what lies beyond stays as it was
          world.run(Collective::reduce_scatter(DType::I32, shape, dim, Monoid::Sum, "x"), in.data(),
                    part.data());
          EXPECT_EQ(part, chunk_of(sum, shape, dim, n, r));
        });
      }
    }
  }
}

TEST(Backend, ReduceScatterHasTheBitsOfSumsInRankOrder) {
  for (const int n : worlds()) {
    const std::int64_t count = 4800;
    const std::vector<float> expected = reduced<float>(Monoid::Sum, n, count);
    run_world(n, [&](Communicator& world) {
      const std::vector<float> in = values<float>(world.rank(), count);
      std::vector<float> out(static_cast<std::size_t>(count / n));
      world.run(Collective::reduce_scatter(DType::F32, {count}, 0, Monoid::Sum, "x"), in.data(),
                out.data());
      const auto first = expected.begin() + static_cast<std::ptrdiff_t>(out.size()) * world.rank();
      EXPECT_TRUE(same_bits(out, {first, first + static_cast<std::ptrdiff_t>(out.size())}));
    });
  }
}

TEST(Backend, AllToAllBetweenAnyTwoDims) {
  for (const int n : worlds()) {
    for (const Shape& shape : kShapes) {
      for (int gather = 0; gather < shape.ndim(); ++gather) {
        for (int scatter = 0; scatter < shape.ndim(); ++scatter) {
          if (gather == scatter) continue;
          SCOPED_TRACE(text(n, " ranks, ", shape, " from ", scatter, " to ", gather));
          const std::vector<std::int32_t> whole = indices(shape.numel());
          run_world(n, [&](Communicator& world) {
            const auto in = chunk_of(whole, shape, gather, n, world.rank());
            const auto expected = chunk_of(whole, shape, scatter, n, world.rank());
            std::vector<std::int32_t> out(expected.size(), -1);
            world.run(Collective::all_to_all(DType::I32, shape, gather, scatter, "x"), in.data(),
                      out.data());
            EXPECT_EQ(out, expected);
          });
        }
      }
    }
  }
}

TEST(Backend, AllGatherInItsPlace) {
  run_world(4, [&](Communicator& world) {
    std::vector<double> x(4000, -1);
    double* mine = x.data() + 1000 * world.rank();
    for (int i = 0; i < 1000; ++i) mine[i] = world.rank();
    world.run(Collective::all_gather(DType::F64, {4000}, 0, "x"), mine, x.data());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], static_cast<double>(i / 1000));
  });
}

TEST(Backend, BroadcastFromEveryRank) {
  for (const int n : worlds()) {
    for (const std::int64_t count : kCounts) {
      for (int root = 0; root < n; ++root) {
        run_world(n, [&](Communicator& world) {
          std::vector<double> x = values<double>(world.rank(), count);
          const bool in_place = world.rank() == root;
          world.run(Collective::broadcast(DType::F64, {count}, root, "x"),
                    in_place ? x.data() : nullptr, x.data());
          EXPECT_TRUE(same_bits(x, values<double>(root, count)));
        });
      }
    }
  }
}

TEST(Backend, SendsAroundARing) {
  for (const int n : worlds()) {
    for (const std::int64_t count : kCounts) {
      run_world(n, [&](Communicator& world) {
        const int next = (world.rank() + 1) % n, last = (world.rank() + n - 1) % n;
        const auto send = Collective::send(DType::F32, {count}, next, "x");
        const auto recv = Collective::recv(DType::F32, {count}, last, "x");
        const std::vector<float> in = values<float>(world.rank(), count);
        // As many in flight as there may be, more rounds than slots.
        for (int round = 0; round < 3; ++round) {
          std::array<Ticket, Communicator::kInFlight> sent, received;
          std::array<std::vector<float>, Communicator::kInFlight> out;
          for (std::size_t i = 0; i < sent.size(); ++i) {
            out[i].resize(in.size());
            sent[i] = world.start(send, in.data(), nullptr);
            received[i] = world.start(recv, nullptr, out[i].data());
          }
          for (std::size_t i = 0; i < sent.size(); ++i) {
            world.wait(received[i]);
            world.wait(sent[i]);
            EXPECT_TRUE(same_bits(out[i], values<float>(last, count)));
          }
        }
      });
    }
  }
}

TEST(Backend, PairsOfAMeshAtTheSameTime) {
  if (!has_world(8)) GTEST_SKIP() << "needs 8 ranks";
  const Mesh mesh = parse_mesh("pp=2 mb=3@time dp=2 tp=2");
  const std::vector<std::vector<std::string>> axes = {
      {"pp"}, {"dp"}, {"tp"}, {"pp", "dp"}, {"tp", "dp"}, {"pp", "dp", "tp"}, {}};
  run_world(8, [&](Communicator& world) {
    std::vector<std::unique_ptr<Communicator>> groups;
    for (const auto& names : axes)
      groups.push_back(world.join(group_of(mesh, names, world.rank())));
    for (int round = 0; round < 50; ++round) {
      for (const auto& group : groups) {
        std::vector<std::int64_t> in(300, 1 << world.rank()), out(300);
        std::int64_t expected = 0;
        for (const int r : group->group().ranks) expected += 1 << r;
        group->run(Collective::all_reduce(DType::I64, {300}, Monoid::Sum, "x"), in.data(),
                   out.data());
        ASSERT_EQ(out, std::vector<std::int64_t>(300, expected));
        std::vector<std::int64_t> ranks(group->group().ranks.size());
        const std::int64_t me = world.rank();
        group->run(Collective::all_gather(DType::I64, {group->size()}, 0, "x"), &me, ranks.data());
        ASSERT_EQ(std::vector<int>(ranks.begin(), ranks.end()), group->group().ranks);
      }
    }
  });
}

TEST(Backend, ThousandsOfSmallCallsOnMoreRanksThanCores) {
  constexpr int kRounds = 3000;
  const int n = worlds().back();
  run_world(n, [&](Communicator& world) {
    const auto c = Collective::all_reduce(DType::I64, {}, Monoid::Sum, "x");
    const auto barrier = Collective::barrier("b");
    for (std::int64_t i = 0; i < kRounds; ++i) {
      std::int64_t x = i + world.rank(), sum = 0;
      world.run(c, &x, &sum);
      ASSERT_EQ(sum, n * i + n * (n - 1) / 2);
      world.run(barrier, nullptr, nullptr);
    }
  });
}

TEST(Backend, CountsCallsAndBytes) {
  if (!has_world(4)) GTEST_SKIP() << "needs 4 ranks, all of the world";
  const Mesh mesh = parse_mesh("dp=2 tp=2");
  run_world(4, [&](Communicator& world) {
    const auto tp = world.join(group_of(mesh, {"tp"}, world.rank()));
    std::vector<float> a(12), b(12);
    const Counts before = world.counts();
    const auto called = [&](CollectiveKind kind) -> Count {
      const auto k = static_cast<std::size_t>(kind);
      return {world.counts()[k].calls - before[k].calls, world.counts()[k].bytes - before[k].bytes};
    };
    tp->run(Collective::all_reduce(DType::F32, {12}, Monoid::Sum, "x"), a.data(), b.data());
    tp->run(Collective::all_reduce(DType::F32, {6}, Monoid::Sum, "x"), a.data(), b.data());
    world.run(Collective::all_gather(DType::F32, {9}, 0, "x"), a.data(), b.data());
    EXPECT_EQ(tp->group().name, "tp");
    EXPECT_EQ(tp->counts()[static_cast<std::size_t>(CollectiveKind::AllReduce)],
              (Count{2, 48 + 24}));
    // Chunks of ceil(9 / 4) = 3 to three others.
    EXPECT_EQ(called(CollectiveKind::AllGather), (Count{1, 3 * 12}));
    EXPECT_EQ(called(CollectiveKind::AllReduce), Count{});
  });
}

}  // namespace
}  // namespace tessera
