#include <algorithm>
#include <numeric>

#include "tessera/ops/index_impl.h"
#include "tessera/ops/top_k.h"

namespace tessera {

namespace {

/// Of each group the ids in order, those of one value together, the first to be kept first.
template <typename T>
void keep_first(const std::int32_t* ids, const T* keys, std::int64_t n, std::int64_t capacity,
                std::int32_t* out) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return ids[i] != ids[j] ? ids[i] < ids[j] : precedes(keys[i], i, keys[j], j);
  });
  std::int64_t before = 0;  // of the same id
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t at = order[i];
    before = i > 0 && ids[order[i - 1]] == ids[at] ? before + 1 : 0;
    out[at] = ids[at] >= 0 && before < capacity ? ids[at] : -1;
  }
}

template <typename T>
void capacity_reference(RefCall& c) {
  const std::int64_t n = c.in_shape(0).back() * c.in_shape(0).back(1), all = c.in_shape(0).numel(),
                     capacity = c.call.integer("capacity");
  for (std::int64_t at = 0; at < all; at += n)
    keep_first(c.in<std::int32_t>(0) + at, c.in<T>(1) + at, n, capacity,
               c.out<std::int32_t>(0) + at);
}

}  // namespace

constinit const OpDef kWithinCapacity = {
    .name = "within_capacity",
    .doc = "ids, of which in each group of rows the last of equal ones become -1 beyond a number",
    .attrs = {{"capacity", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      index::require_ids(c, 0);
      const TensorType &ids = c.in(0), &keys = c.in(1);
      const std::int64_t capacity = c.integer("capacity");
      require(ids.ndim() >= 2 && keys.shape == ids.shape && is_float(keys.dtype) && capacity >= 0,
              "within_capacity: ids are ", ids, ", keys are ", keys, ", capacity is ", capacity,
              "; give ids [..., t, k], a float for each, and a capacity of at least 0");
      return {ids};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("... t k, ... t k -> ... t k | t:whole k:whole", c.ndims());
    },
    .grad = nullptr,
    // The sorting of a group.
    .flops = [](const OpCall& c) -> double {
      const double n = static_cast<double>(c.in(0).shape.back() * c.in(0).shape.back(1));
      return static_cast<double>(c.in(0).numel()) * std::log2(n + 1);
    },
    .reference = {capacity_reference<float>, capacity_reference<double>},
    .arithmetic = Arithmetic::Wide,
};

Value within_capacity(Value ids, Value keys, std::int64_t capacity, Where where) {
  return ids.builder().add(kWithinCapacity, {ids, keys}, {capacity}, where);
}

}  // namespace tessera
