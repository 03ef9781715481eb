#pragma once
/// What the entries of ops that read or write by index share.

#include "tessera/ir/builder.h"
#include "tessera/ops/reference.h"

namespace tessera::index {

inline void require_ids(const OpCall& c, int operand) {
  require(c.in(operand).dtype == DType::I32, c.op().name, ": ids are ", c.in(operand),
          "; cast them to i32");
}

/// `shape` without its last dim.
inline Shape leading(Shape shape) {
  shape.erase(shape.ndim() - 1);
  return shape;
}

/// The place of a logical index in one rank's part of a dim, or -1 where another rank (or nobody)
/// holds it. Ids beyond the extent are garbage, and whoever looks them up must not be led out of
/// bounds.
inline std::int64_t local_place(std::int64_t index, const RefOperand& operand, int dim) {
  const std::int64_t local = index - operand.offset[dim];
  return local >= 0 && local < operand.valid[dim] ? local : -1;
}

/// The ids, and what they name: read, then written.
template <int kIds>
double bytes_named(const OpCall& c) {
  return static_cast<double>(c.in(kIds).bytes() + 2 * c.out(0).bytes());
}

inline double one_per_cotangent(const OpCall& c) { return static_cast<double>(c.in(1).numel()); }

/// Says that a gradient shares the factor names of the forward node that made `result`.
inline Value like(Value gradient, Value result) {
  gradient.builder().set_like(gradient, result.id().node);
  return gradient;
}

}  // namespace tessera::index
