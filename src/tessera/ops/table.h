#pragma once
/// The room `ops`: the op table, reference loops, the interpreter.
/// For: all that is known of an op in one entry: types, sharding, gradient, cost, reference.
/// Not for: fast kernels (device).
/// Rejected: sharding by code for each op. A rule is written like an einsum, and an op whose
/// communication does not follow from one is expanded into simpler ops. Gradients of sharded ops:
/// they are taken on whole tensors, before sharding.
///
/// The op table: every op there is. A test walks it and fails on holes.

#include <span>
#include <string_view>

#include "tessera/ir/op_def.h"

namespace tessera {

std::span<const OpDef* const> all_ops();
/// Null where there is none.
const OpDef* find_op(std::string_view name);

}  // namespace tessera
