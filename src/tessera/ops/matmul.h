#pragma once
/// Matrix products of any orientation, as an einsum of two operands.

#include <string_view>

#include "tessera/ir/builder.h"

namespace tessera {

struct MatmulOptions {
  bool trans_a = false, trans_b = false;  // the last two dims are exchanged first
};

/// a [..., m, k] x b [..., k, n] -> [..., m, n]. Leading dims are batch dims, aligned at the last
/// of them. One that an operand lacks, or has with size 1, repeats against the other operand's,
/// which may be split as if there were no such dim; the gradient is summed over it. Errors: less
/// than two dims; batch dims of other sizes.
Value matmul(Value a, Value b, MatmulOptions options = {}, Where where = Where::here());

/// The product that `rule` says, e.g. "b s k, n k -> b s n": factors in both operands and the
/// result are batch dims, those in both operands only are summed over. One name per dim.
/// Errors: a factor in only one operand and not in the result; sizes that differ.
Value einsum(std::string_view rule, Value a, Value b, Where where = Where::here());

extern const OpDef kMatmul;

/// How a matmul's factors are ordered in its operands, for kernels and costs.
struct MatmulDims {
  std::vector<int> batch, m, n, k;  // factor ids
  Factors factors;
};
MatmulDims matmul_dims(const OpCall& call);

}  // namespace tessera
