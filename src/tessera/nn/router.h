#pragma once
/// Which experts each token reads, and how much of each.

#include "tessera/nn/experts.h"

namespace tessera {

struct Routed {
  Value ids, weights;  // [b, s, k] of i32, -1 where a choice is dropped; and of floats
};

/// Of x [b, s, d], in the block "router". What it measures is added to pass.routing.
Routed route(Value x, const TransformerLayer& layer, const Pass& pass, Where where);

}  // namespace tessera
