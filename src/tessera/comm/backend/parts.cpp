#include "tessera/comm/backend/parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera::backend {

namespace {

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

}  // namespace

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

Part scattered(const Shape& whole, int dim, int ranks, int i) {
  Part part = gathered(whole, dim, ranks, i);
  std::swap(part.from, part.to);
  return part;
}

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

bool in_one_piece(const Part& p, const Side& side) {
  return (p.b == 1 || side.b == p.row) && (p.x == 1 || side.x == p.b * p.row) &&
         (p.a == 1 || side.a == p.x * p.b * p.row);
}

namespace {

/// Calls move(where on the side, where in the run, length) for each row, or piece of one, of a run
/// of elements.
template <typename Move>
void for_run(const Part& p, const Side& side, std::int64_t begin, std::int64_t count,
             const Move& move) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t i = (begin + done) / p.row, skip = (begin + done) % p.row;
    const std::int64_t length = std::min(p.row - skip, count - done);
    const std::int64_t at =
        side.begin + i / (p.b * p.x) * side.a + i / p.b % p.x * side.x + i % p.b * side.b + skip;
    move(at, done, length);
    done += length;
  }
}

}  // namespace

void pack(const Part& part, int element_bytes, const void* from, std::int64_t begin,
          std::int64_t count, void* dense) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(dense);
  for_run(part, part.from, begin, count, [&](std::int64_t at, std::int64_t i, std::int64_t n) {
    std::memcpy(target + i * element_bytes, source + at * element_bytes,
                static_cast<std::size_t>(n * element_bytes));
  });
}

void unpack(const Part& part, int element_bytes, const void* dense, std::int64_t begin,
            std::int64_t count, void* to) {
  const auto* source = static_cast<const char*>(dense);
  auto* target = static_cast<char*>(to);
  for_run(part, part.to, begin, count, [&](std::int64_t at, std::int64_t i, std::int64_t n) {
    std::memcpy(target + at * element_bytes, source + i * element_bytes,
                static_cast<std::size_t>(n * element_bytes));
  });
}

Span share(std::int64_t count, int ranks, int i) {
  constexpr std::int64_t kGrain = 64;  // elements
  const std::int64_t grains = (count + kGrain - 1) / kGrain;
  return {std::min(count, grains * i / ranks * kGrain),
          std::min(count, grains * (i + 1) / ranks * kGrain)};
}

}  // namespace tessera::backend
