#pragma once
/// What of one rank's tensor goes where in another's: the pieces that collectives move.

#include <algorithm>
#include <cstdint>

#include "tessera/comm/collective.h"

namespace tessera::backend {

/// A part of a tensor as rows of `row` contiguous elements: `a` outer blocks, in each `x` of one
/// dim, in each `b`. The same part lies in two tensors; each has its own strides and beginning.
struct Side {
  std::int64_t begin, a, x, b;  // strides in elements
};
struct Part {
  std::int64_t a, x, b, row;
  Side from, to;

  std::int64_t elements() const { return a * x * b * std::max<std::int64_t>(row, 0); }
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

/// all_gather: where chunk `i`, a tensor of its own, lies in the whole.
Part gathered(const Shape& whole, int dim, int ranks, int i);
/// reduce_scatter: the other way.
Part scattered(const Shape& whole, int dim, int ranks, int i);
/// all_to_all: what rank `to` takes of rank `from`, whose chunk of `gather` holds all of `scatter`.
Part exchanged(const Collective& c, int ranks, int from, int to);

/// Elements that lie in one piece.
constexpr Part flat(std::int64_t begin, std::int64_t count) {
  return {1, 1, 1, count, {begin, 0, 0, 0}, {begin, 0, 0, 0}};
}

void copy(const Part& part, int element_bytes, const void* from, void* to);

/// True where the elements of a side lie one after another.
bool in_one_piece(const Part& part, const Side& side);
/// Elements `begin` to `begin + count` of the part, in the order of its rows, from its `from` side
/// to dense memory; and from there to its `to` side.
void pack(const Part& part, int element_bytes, const void* from, std::int64_t begin,
          std::int64_t count, void* dense);
void unpack(const Part& part, int element_bytes, const void* dense, std::int64_t begin,
            std::int64_t count, void* to);

/// Chunk `i` of `count` elements that one rank of `ranks` reduces for all: chunks share no cache
/// line.
struct Span {
  std::int64_t begin, end;
};
Span share(std::int64_t count, int ranks, int i);

}  // namespace tessera::backend
