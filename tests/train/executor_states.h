#pragma once
/// Sets what an executor has learned, for tests that run a step from states they know.

#include "tessera/ops/interpret.h"
#include "tessera/runtime/executor.h"

namespace tessera {

/// All states of a graph, each rounded to its type.
inline void set_states(Executor& executor, const Graph& graph, const Bindings& from) {
  for (const State& state : graph.states()) {
    const HostTensor& exact = from.states.at(state.path);
    HostTensor value(graph.type(state.value));
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, exact.at(i));
    executor.write_state(state.path, value.bytes());
  }
}

}  // namespace tessera
