#pragma once
/// A sum of zero-padded pieces that tile a dim is their concatenation.

#include "tessera/ir/graph.h"

namespace tessera {

/// The gradient of a value that is only read through slices is a sum of pads (query, key and value
/// of a packed projection): pads and additions of mostly zeros become one concat. Run before
/// simplify, which removes what is left over.
///
/// In, out: Form::Global; results do not change by a bit (x + 0 is x, but for the sign of a zero).
Graph merge_pads(const Graph& graph);

}  // namespace tessera
