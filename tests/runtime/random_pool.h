#pragma once
/// The values that a random graph has so far, and how random ops choose among them.

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/random_graph.h"
#include "tessera/base/philox.h"
#include "tessera/ir/builder.h"

namespace tessera::fuzz {

/// Numbers of one stream of a seed.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  std::uint32_t bits() { return philox_bits(seed_, count_++, stream_); }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }
  bool chance(double p) { return unit_float(bits()) < p; }
  double between(double low, double high) { return low + (high - low) * unit_float(bits()); }
  std::int64_t one_of(std::initializer_list<std::int64_t> list) {
    return list.begin()[below(static_cast<std::int64_t>(list.size()))];
  }

 private:
  std::uint64_t seed_, stream_, count_ = 0;
};

/// A value, and how the rows of the batch lie in it.
struct Item {
  Value value;
  int rows_dim = -1;         // the dim whose major factor is the batch; -1: the same for all rows
  std::int64_t per_row = 1;  // the size of that dim over kRows
  double size = 1;           // a guess at how large its numbers are
  bool gradient_stops = false;  // no parameter's gradient may flow through it
  bool trained = false;         // may depend on parameters

  const Shape& shape() const { return value.shape(); }
  int ndim() const { return value.ndim(); }
  bool is(DType dtype) const { return value.dtype() == dtype; }
  /// Laid out like a batch input: [kRows, ...].
  bool rows_first() const { return rows_dim == 0 && per_row == 1; }
};

inline constexpr std::int64_t kMaxElements = 6000;

class Pool {
 public:
  Pool(Builder& builder, std::uint64_t seed)
      : builder(builder),
        random(seed, 0),
        large(seed % 16 == 5),
        max_elements(large ? kMaxElements : 700) {}

  Builder& builder;
  Random random;
  std::vector<Item> items;
  std::size_t window = 0;  // items before it are out of sight: what lies outside a block
  int names = 0;           // of parameters and random ops in the current block
  /// A few graphs have tensors of more than one tile of a kernel, or of more than one thread.
  const bool large;
  const std::int64_t max_elements;
  bool mixes_rows = false;
  Value step;  // i64 scalar: for random ops

  using Wanted = std::function<bool(const Item&)>;
  /// A recent item that is wanted, or nothing.
  std::optional<Item> pick(const Wanted& wanted);
  std::optional<Item> pick_float() {
    return pick([](const Item& i) { return i.is(DType::F32); });
  }

  /// Adds a value made from others; too large numbers are first made small. Too large tensors are
  /// left out.
  void push(Item item, std::initializer_list<const Item*> from);

  /// Notes that `result` is elementwise in `operand`: a parameter with its own numbers for every
  /// row of the batch has a gradient that micro-batches cannot sum.
  void meets(const Item& result, const Item& operand);

  /// A new parameter, or one of that shape that is there already.
  Item parameter(const Shape& shape);
  Item batch_floats(const Shape& shape);
  Item batch_ids(const Shape& shape, std::int64_t high);
  Item batch_bits(const Shape& shape);
  std::string fresh_name(std::string_view prefix) { return text(prefix, names++); }

  /// Integers in [0, high), with some outside, of the shape and rows of a float item.
  Item ids_like(const Item& like, std::int64_t high);

  /// Sizes for dims other than the batch.
  std::int64_t dim_size() {
    if (large && random.chance(0.3)) return random.one_of({33, 48, 64, 100});
    return random.one_of({1, 2, 3, 4, 4, 5, 7, 8, 8, 16, 17});
  }
};

/// How the rows lie in the result of an elementwise op; nothing where the two do not fit.
std::optional<Item> broadcast_rows(const Item& a, const Item& b);

/// One kind of random op: adds a value to the pool, or nothing where no operand fits.
using Family = void (*)(Pool&);
struct WeightedFamily {
  int weight;
  Family add;
};
std::span<const WeightedFamily> simple_families();  // elementwise, reductions, shape
std::span<const WeightedFamily> model_families();   // products, index, norms, attention, random
/// Any op, as one of the rows of its tests uses it: how ops are met that no family knows.
void row_of_an_op(Pool& p);

}  // namespace tessera::fuzz
