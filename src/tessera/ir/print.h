#pragma once
/// The text form of graphs: one line per node. parse.h reads it back; the grammar is in
/// docs/internals/graph-text.md.

#include <string>

#include "tessera/ir/graph.h"

namespace tessera {

/// Everything that is in the graph; equal graphs have equal texts. Blocks that repeat are printed
/// once.
std::string to_text(const Graph& graph);

}  // namespace tessera
