#pragma once
/// Random train-step graphs: what the whole compiler is held to by comparing compiled with
/// interpreted steps.

#include <cstdint>

#include "tessera/ir/graph.h"
#include "tessera/ops/interpret.h"

namespace tessera::fuzz {

/// Rows of every batch input: 1, 2 and 3 micro-batches divide it.
inline constexpr std::int64_t kRows = 6;

struct RandomGraph {
  Graph graph;
  /// True where a node reads several rows of the batch at once, so that micro-batches may be
  /// refused.
  bool mixes_rows = false;
};

/// A train step made of `seed`: batch inputs, states, a forward part of about `ops` random ops, a
/// loss, gradients, updates, and outputs of all kinds. Fewer ops make a beginning of the same
/// graph: a failure is made small by lowering `ops`.
RandomGraph random_graph(std::uint64_t seed, int ops);

/// How many ops the graph of a seed has where nobody says otherwise.
int random_size(std::uint64_t seed);

/// First values of all states, and the batch inputs of one step.
Bindings random_states(const Graph& graph, std::uint64_t seed);
void random_batch(const Graph& graph, std::uint64_t seed, int step, Bindings& into);

/// The same inputs with every f32 changed by about 1e-6 of itself: what such a change does to the
/// results bounds what rounding may do to them.
Bindings disturbed(const Bindings& inputs, std::uint64_t seed);

}  // namespace tessera::fuzz
