#pragma once
/// A call cut along one factor of its rule: each part is a call of the same op on a part of the
/// operands, as a shard is on another rank.

#include <optional>
#include <vector>

#include "tessera/ir/op_def.h"

namespace tessera {

/// Per operand, per result: the dim that is cut; -1: none. A result without one is the sum of those
/// of all parts.
struct CutDims {
  std::vector<int> ins, outs;
};

/// False of ops whose elements depend on where they lie, whatever is cut, and of those whose
/// attributes hold sizes: a part would need its own.
bool may_be_cut(const OpDef& op);

/// The parts of a call of an op that may be cut; `rule`: its factors. Nullopt where that factor
/// cannot be cut: it is not summed or passed on, or shares a dim with others, or an operand of
/// numbers that name rows is not cut with it, or a sum would be one of integers.
std::optional<CutDims> cut_along(const OpCall& call, const Factors& rule, int factor);

/// The factor that is a dim of a value, alone; -1 where there is no such factor.
int factor_of_dim(const Factors::Dims& dims, int dim);

}  // namespace tessera
