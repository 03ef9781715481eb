#pragma once
/// Why a node cannot be spread as it was asked to be, in words.

#include <string>

#include "tessera/ir/graph.h"
#include "tessera/passes/decide.h"

namespace tessera {

/// Throws what is wrong with cutting a node into micro-batches along `axis`.
[[noreturn]] void refuse_time(const Node& node, const Undecided& undecided, int axis);

/// "reshape in layers.0.attn cannot be split by axis 'tp' of size 3: ...", with what is legal.
std::string why_lost(const Node& node, const Undecided& undecided,
                     const NodeDecision::LostSharding& lost, const Axes& axes);

}  // namespace tessera
