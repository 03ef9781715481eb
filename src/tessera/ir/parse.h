#pragma once
/// Reads the text form of graphs (print.h writes it; the grammar is in docs/internals/graph-text.md).

#include <string_view>

#include "tessera/ir/graph.h"

namespace tessera {

/// Finds an op by its name; null where there is none. `find_op` of ops/table.h is one.
using FindOp = const OpDef* (*)(std::string_view);

/// The graph that prints as `text`. Forms are not verified; call `verify` for that.
///
/// Errors: text that is not a graph: line, column and what was expected there.
Graph parse_graph(std::string_view text, FindOp find_op);

}  // namespace tessera
