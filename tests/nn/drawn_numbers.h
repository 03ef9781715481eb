#pragma once
/// Numbers for the layers that are compared with plain loops.

#include <cmath>

#include "tessera/ops/interpret.h"

namespace tessera {

/// Every state and the batch input "x" of a graph, with a number of its own for each element.
inline Bindings drawn_numbers(const Graph& graph, const Shape& x) {
  double next = 0;
  const auto draw = [&](const Shape& shape) {
    HostTensor out(DType::F64, shape);
    for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, std::sin(next += 1.7));
    return out;
  };
  Bindings out;
  for (const State& state : graph.states())
    out.states.emplace(state.path, draw(graph.type(state.value).shape));
  out.batch["x"] = draw(x);
  return out;
}

}  // namespace tessera
