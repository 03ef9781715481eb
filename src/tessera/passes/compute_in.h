#pragma once
/// Mixed precision: forward and backward in 16-bit floats, parameters and their updates in f32.
///
/// Each parameter that forward or backward reads gets a copy in 16 bits, a state of its own which
/// the update writes: so nothing is cast while layers are computed, ranks gather half of the bytes
/// (ZeRO-3), and with ZeRO-1 the f32 numbers are stored in parts, as moments are. Ops say in what
/// they compute (OpDef::arithmetic): products in 16 bits; others as their operands, each result
/// being computed in f32 and rounded once; softmax in f32, and losses and statistics of norms
/// result in f32. Gradients of parameters are added up, over micro-batches and ranks, in f32 or,
/// which moves half of the bytes, in 16 bits; updates use them in f32.
/// Micikevicius et al. 2018, arXiv 1710.03740.

#include <functional>
#include <string_view>

#include "tessera/ir/graph.h"

namespace tessera {

struct Precision {
  DType compute = DType::BF16;  // or F16; F32: the same copies and sums, and nothing is rounded
  DType sums = DType::F32;      // of gradients of parameters; or as `compute`
};

/// Of the path of a parameter: no step changes it.
using IsFrozen = std::function<bool(std::string_view path)>;

/// The same program (Form::Global), computed in such floats. Outputs keep their types. A parameter
/// that is frozen, and what one was when training began, is stored in them alone: nothing needs its
/// f32.
Graph compute_in(const Graph& graph, const Precision& precision, const IsFrozen& frozen = nullptr);

}  // namespace tessera
