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

struct GroupedMatmulOptions {
  bool trans_w = false;  // w is [groups, b, a]
  /// The result is read by elementwise ops and by products of as many groups with the same ids: where
  /// groups are split, a rank has the rows of its own groups. Else the result is a sum over ranks.
  bool makes_rows = false;
  bool reads_rows = false;  // x is such
};

/// Row i of x times the matrix that its id names: ids [...] of i32, x [..., a], w [groups, a, b] ->
/// [..., b]. x may lack the last dim of the ids: its rows are then multiplied by several matrices
/// each. Ids out of range give zeros, so -1 is no matrix. The time is that of the rows, however many
/// matrices there are.
///
/// The groups may be split along an axis of the mesh: a rank computes the rows of its matrices, and
/// the sum over ranks is the result.
/// Errors: ids are not i32; sizes that do not fit; x and w of other floats.
Value grouped_matmul(Value ids, Value x, Value w, GroupedMatmulOptions options = {},
                     Where where = Where::here());

extern const OpDef kGroupedMatmul;
/// The gradient of w: for each group the sum over its rows of p^T q. Ids [...], p [..., a], q [...,
/// b] -> [groups, a, b]; p or q may lack the last dim of the ids. Onto operand 3, where there is
/// one.
extern const OpDef kGroupedOuter;

extern const OpDef kMatmul;

/// How a matmul's factors are ordered in its operands, for kernels and costs.
struct MatmulDims {
  std::vector<int> batch, m, n, k;  // factor ids
  Factors factors;
};
MatmulDims matmul_dims(const OpCall& call);

}  // namespace tessera
