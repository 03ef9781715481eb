/// What a collective does between its two barriers: each rank reads its peers' memory.

#include <algorithm>
#include <cstring>
#include <span>

#include "tessera/comm/local/communicator.h"
#include "tessera/comm/local/reduce.h"

namespace tessera::local {

namespace {

/// A part of a tensor as rows of `row` contiguous elements: `a` outer blocks, in each `x` of one
/// dim, in each `b`. The same part lies in two tensors; each has its own strides and beginning.
struct Side {
  std::int64_t begin, a, x, b;  // strides in elements
};
struct Part {
  std::int64_t a, x, b, row;
  Side from, to;
};

template <typename Move>
void for_rows(const Part& p, const Move& move) {
  if (p.row <= 0) return;
  for (std::int64_t a = 0; a < p.a; ++a) {
    for (std::int64_t x = 0; x < p.x; ++x) {
      for (std::int64_t b = 0; b < p.b; ++b) {
        move(p.from.begin + a * p.from.a + x * p.from.x + b * p.from.b,
             p.to.begin + a * p.to.a + x * p.to.x + b * p.to.b);
      }
    }
  }
}

std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= shape[d];
  return n;
}

/// A dim cut over the ranks: what chunk `i` has of it.
struct Cut {
  std::int64_t size, chunk;
  Cut(std::int64_t size, int ranks) : size(size), chunk((size + ranks - 1) / ranks) {}
  std::int64_t begin(int i) const { return std::min(size, chunk * i); }
  std::int64_t valid(int i) const { return std::min(size, chunk * (i + 1)) - begin(i); }
};

/// all_gather: where chunk `i`, a tensor of its own, lies in the whole.
Part gathered(const Shape& whole, int dim, int ranks, int i) {
  const Cut cut(whole[dim], ranks);
  const std::int64_t inner = product(whole, dim + 1, whole.ndim());
  return {product(whole, 0, dim),
          1,
          1,
          cut.valid(i) * inner,
          {0, cut.chunk * inner, 0, 0},
          {cut.begin(i) * inner, cut.size * inner, 0, 0}};
}

/// reduce_scatter: the other way.
Part scattered(const Shape& whole, int dim, int ranks, int i) {
  Part part = gathered(whole, dim, ranks, i);
  std::swap(part.from, part.to);
  return part;
}

/// all_to_all: what rank `to` takes of rank `from`, whose chunk of `gather` holds all of `scatter`.
Part exchanged(const Collective& c, int ranks, int from, int to) {
  const Shape& w = c.whole;
  const bool gather_first = c.gather < c.scatter;
  const int first = std::min(c.gather, c.scatter), second = std::max(c.gather, c.scatter);
  const Cut g(w[c.gather], ranks), s(w[c.scatter], ranks);
  const std::int64_t b = product(w, first + 1, second), inner = product(w, second + 1, w.ndim());
  const auto side = [&](std::int64_t g_size, std::int64_t g_begin, std::int64_t s_size,
                        std::int64_t s_begin) -> Side {
    const std::int64_t x_size = gather_first ? g_size : s_size;
    const std::int64_t y_size = gather_first ? s_size : g_size;
    const std::int64_t x_begin = gather_first ? g_begin : s_begin;
    const std::int64_t y_begin = gather_first ? s_begin : g_begin;
    const std::int64_t row = y_size * inner;
    return {x_begin * b * row + y_begin * inner, x_size * b * row, b * row, row};
  };
  const std::int64_t g_valid = g.valid(from), s_valid = s.valid(to);
  return {product(w, 0, first),
          gather_first ? g_valid : s_valid,
          b,
          (gather_first ? s_valid : g_valid) * inner,
          side(g.chunk, 0, s.size, s.begin(to)),
          side(g.size, g.begin(from), s.chunk, 0)};
}

void copy(const Part& part, int element_bytes, const void* from, void* to) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  for_rows(part, [&](std::int64_t source_at, std::int64_t target_at) {
    const char* s = source + source_at * element_bytes;
    char* t = target + target_at * element_bytes;
    if (s != t) std::memcpy(t, s, static_cast<std::size_t>(part.row * element_bytes));
  });
}

}  // namespace

void LocalCommunicator::work(const Collective& c, bool small) {
  if (c.kind == Kind::Barrier) return;
  const int n = size(), me = rank(), bytes = size_of(c.dtype);
  void* out = outs_[static_cast<std::size_t>(me)];
  // Each rank begins with its own part and goes on to the next rank's, so that they do not all read
  // one rank's memory.
  const auto each_peer = [&](const auto& visit) {
    for (int k = 0; k < n; ++k) visit((me + k) % n, ins_[static_cast<std::size_t>((me + k) % n)]);
  };
  switch (c.kind) {
    case Kind::AllReduce:
      return all_reduce(c, small);
    case Kind::AllGather:
      return each_peer([&](int peer, const void* in) {
        copy(gathered(c.whole, c.gather, n, peer), bytes, in, out);
      });
    case Kind::AllToAll:
      return each_peer(
          [&](int peer, const void* in) { copy(exchanged(c, n, peer, me), bytes, in, out); });
    case Kind::ReduceScatter: {
      const Part part = scattered(c.whole, c.scatter, n, me);
      return for_rows(part, [&](std::int64_t from, std::int64_t to) {
        reduce(c.dtype, c.monoid, ins_, from, std::span<void* const>(&out, 1), to, part.row);
      });
    }
    case Kind::Broadcast: {
      const std::int64_t count = c.whole.numel();
      return copy({1, 1, 1, count, {}, {}}, bytes, ins_[static_cast<std::size_t>(c.peer)], out);
    }
    case Kind::Send:
    case Kind::Recv:
    case Kind::Barrier:
      return;
  }
}

/// A small one is reduced by each rank for itself, from copies; of a large one, rank r reduces the
/// r-th chunk and writes it to all.
void LocalCommunicator::all_reduce(const Collective& c, bool small) {
  const std::int64_t count = c.whole.numel();
  if (small) {
    const std::span<void* const> mine(&outs_[static_cast<std::size_t>(rank())], 1);
    return reduce(c.dtype, c.monoid, ins_, 0, mine, 0, count);
  }
  constexpr std::int64_t kGrain = 64;  // elements: chunks share no cache line
  const std::int64_t grains = (count + kGrain - 1) / kGrain;
  const std::int64_t begin = grains * rank() / size() * kGrain;
  const std::int64_t end = std::min(count, grains * (rank() + 1) / size() * kGrain);
  reduce(c.dtype, c.monoid, ins_, begin, outs_, begin, end - begin);
}

}  // namespace tessera::local
