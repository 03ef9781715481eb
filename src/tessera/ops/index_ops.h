#pragma once
/// Ops that read or write by index. Indices out of range read zeros and write nothing.

#include "tessera/ir/builder.h"

namespace tessera {

/// Rows of `table` [v, ...] named by `ids` (i32, any shape): [shape of ids, ...]. The embedding.
Value gather(Value ids, Value table, Where where = Where::here());
/// The same along any dim of `table`: the dims of ids stand in the place of `dim`, which may be
/// split (ranks then sum what each of them holds). A negative dim counts from the end.
Value gather(Value ids, Value table, int dim, Where where = Where::here());
/// The gradient of gather: adds rows of `dy` [shape of ids, ...] into a zero table [rows, ...] at
/// `ids`; in row order of ids.
Value scatter_add(Value ids, Value dy, std::int64_t rows, Where where = Where::here());
/// Elements of x [d0, d1, ..., rest] named by `indices` [..., k] (i32) into its first k dims:
/// [..., rest]. Zeros where any of the k is out of range. The first k dims of x count as one dim of
/// a table: of these the first may be split, the other dims as in gather.
Value gather_nd(Value indices, Value x, Where where = Where::here());
/// x [..., v] at `ids` [...] of the last dim: [...].
Value pick(Value x, Value ids, Where where = Where::here());
/// The gradient of pick: dy [...] placed at `ids` of a last dim of `size`, zeros elsewhere.
Value place(Value ids, Value dy, std::int64_t size, Where where = Where::here());
/// x [..., v] at several `ids` [..., k] (i32) of the last dim: [..., k].
Value take_along(Value x, Value ids, Where where = Where::here());
/// The gradient of take_along: dy [..., k] added into zeros [..., size] at `ids` of the last dim.
Value add_along(Value ids, Value dy, std::int64_t size, Where where = Where::here());
/// 1 where the last dim's index equals ids, else 0: [..., size] of `dtype`.
Value one_hot(Value ids, std::int64_t size, DType dtype = DType::F32, Where where = Where::here());
/// The index along `dim`, as i32 or i64 or float, of a tensor of `shape`.
Value iota(Builder& builder, Shape shape, int dim, DType dtype, Where where = Where::here());

extern const OpDef kGather, kScatterAdd, kPick, kPlace, kTakeAlong, kAddAlong, kOneHot, kIota;

}  // namespace tessera
