#pragma once
/// The text form of graphs: one line per node, and back. The grammar is in docs/graph-text.md.

#include <string>
#include <string_view>

#include "tessera/ir/graph.h"

namespace tessera {

/// The whole graph, as parse_graph reads it.
std::string to_text(const Graph& graph);

/// Only "op(inputs) ..." of each node on one line, separated by "; ": for graphs that are attributes.
std::string body_text(const Graph& graph);

}  // namespace tessera
