#pragma once
/// Products of rows with one of several matrices each, which an id names: the experts of a mixture.

#include "tessera/ir/builder.h"

namespace tessera {

struct GroupedMatmulOptions {
  bool trans_w = false;  // w is [groups, b, a]
  /// The result is read by elementwise ops and by products with the same ids that read rows: where
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

}  // namespace tessera
