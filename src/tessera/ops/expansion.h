#pragma once
/// An op written as simpler ones: where one of its stat factors is split over ranks, and where a
/// backend has no kernel for it.

#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/ir/op_def.h"

namespace tessera {

/// The results of `call` on `ins`, whose types the call has. As its kernels do, the expansion
/// computes 16-bit floats in f32 and rounds each result once. The call must not refer into the
/// graph that grows.
std::vector<Value> expansion(const OpCall& call, const std::vector<Value>& ins);

}  // namespace tessera
