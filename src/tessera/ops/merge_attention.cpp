#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/ops/attention.h"
#include "tessera/ops/attention_weights.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

TensorTypes merged_types(const OpCall& c) {
  const TensorType &y = c.in(0), &logsumexp = c.in(1), &more = c.in(2);
  const bool fits = more.ndim() == 5 && is_float(more.dtype);
  const Shape& size = more.shape;
  const TensorType wide{fits ? computed_in(more.dtype) : more.dtype, size, {}};
  require(fits && y == wide &&
              logsumexp == TensorType{wide.dtype, {size[0], size[2], size[3], size[1]}, {}} &&
              c.in(3) == logsumexp,
          c.op().name, ": y is ", y, ", logsumexp ", logsumexp, "; those of more keys are ", more,
          " and ", c.in(3),
          "; they need y [b, s, g, r, e] and logsumexp [b, g, r, s], in f32 but for the second y");
  return {y, logsumexp};
}

template <typename T>
void merge_reference(RefCall& c) {
  const Shape& size = c.in_shape(0);
  const std::int64_t S = size[1], G = size[2], R = size[3], E = size[4];
  const T *y = c.in<T>(0), *logsumexp = c.in<T>(1), *more = c.in<T>(2), *of_more = c.in<T>(3);
  T *out = c.out<T>(0), *sum = c.out<T>(1);
  for_each_index({size[0], G, R, S}, [&](const Shape& at, std::int64_t row) {
    const MergedRow<T> merged = merged_row(logsumexp[row], of_more[row]);
    const std::int64_t first = (((at[0] * S + at[3]) * G + at[1]) * R + at[2]) * E;
    for (std::int64_t i = first; i < first + E; ++i)
      out[i] = merged.first * y[i] + merged.second * more[i];
    sum[row] = merged.logsumexp;
  });
}

}  // namespace

constinit const OpDef kMergeAttention = {
    .name = "merge_attention",
    .doc = "Attention over two sets of keys, from that over each: (y, logsumexp) of both.",
    .infer = merged_types,
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse(
          "b s g r e, b g r s, b s g r e, b g r s -> b s g r e, b g r s | e:whole", c.ndims());
    },
    .flops = [](const OpCall& c) -> double { return 3 * static_cast<double>(c.in(0).numel()); },
    .reference = {merge_reference<float>, merge_reference<double>},
    .in_place = {InPlace{0, 0}, InPlace{1, 1}},
    .statistics = 1u << 0 | 1u << 1 | 1u << 3,
};

}  // namespace tessera
