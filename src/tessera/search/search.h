#pragma once
/// The room `search`: placements of all ops of a step decided together, with a proof or a bound.
/// For: C++ programs and `tessera plan --search-mode`.
/// Not for: how many devices each kind of parallelism gets (planner), or training by default: there
/// propagation decides (passes/propagate.h), node by node, fast and explainable.
///
/// Searches for the placements of all ops of a step, by the names that MindSpore's users know.

#include <string_view>

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"
#include "tessera/search/decision_graph.h"
#include "tessera/tensor/machine.h"

namespace tessera {

enum class SearchMode {
  DynamicProgramming,    // the cheapest placements, with a proof: search/solve.h
  RecursiveProgramming,  // one axis after another, each op cut once along it: search/recursive.h
  ShardingPropagation,   // what follows from the pinned ops alone: passes/propagate.h
};
std::string_view to_text(SearchMode mode);

/// The result of a search, and how it went. Seconds of a step are by the search's prices: the work
/// of forward, backward and update on one rank, and all moves, one after another.
struct SearchReport {
  double step_seconds = 0;   // infinite: nothing keeps to the bytes
  double bound = 0;          // no placements take less; 0: not known
  double gap = 0;            // the part of step_seconds that better placements could save at most
  double bytes = 0;          // on one device: parameters, what goes with them, and kept results
  double seconds = 0;        // of the search
  int ops = 0;               // that were placed
  int classes = 0;           // of ops, of which one was priced
  std::int64_t options = 0;  // ways of all ops
  int decisions = 0, folded = 0;  // of all; those inside of repeated blocks
  int width = 0;                  // the most decisions on which a table depended
};

struct SearchLimits {
  double bytes = kNever;                       // on one device
  std::int64_t table = std::int64_t{1} << 26;  // entries; what would take more gets a bound
};

struct Searched {
  Strategy strategy;  // with a pin for each op and parameter; ShardingPropagation: as it was given
  SearchReport report;
};

/// `step`: in Form::Global, without uses. What the strategy pins stays. The strategy that comes
/// back gives propagate nothing to decide in the forward pass.
/// Errors: those of pins; an op that no axis of the mesh can be kept away from; what is found keeps
/// more than limits.bytes: the message says how much.
Searched search_placements(const Graph& step, const Strategy& strategy, SearchMode mode,
                           const Machine& machine = {}, const SearchLimits& limits = {});

}  // namespace tessera
