#pragma once
/// The ways in which one op can be spread over the mesh, and what each costs.

#include <memory>
#include <vector>

#include "tessera/search/small_graph.h"

namespace tessera {

/// One way: which factor each axis shards, and where results are kept, sums finished.
struct OpOption {
  Choices choices;
  std::vector<AxisPlacements> ins;   // where operands must lie
  std::vector<AxisPlacements> kept;  // per result
  std::vector<AxisPlacements>
      gradients;  // of operands: as backward leaves it, often a sum; empty: none
  friend bool operator==(const OpOption&, const OpOption&) = default;
};

struct OpMenu {
  std::vector<OpOption> options;
  /// Forward and backward work, and what moves inside: sums that are finished, the gradient of the
  /// result brought to where it is needed. Bytes are those of results that backward reads.
  std::shared_ptr<const Options> costs;
  double flops = 0, moved_bytes = 0;  // of the whole op
};

/// What the rest of the graph and the user say of an op.
struct OpUse {
  std::vector<bool> wants;      // operands whose gradient is computed
  std::vector<bool> flows;      // results through which a gradient comes
  std::vector<bool> read_back;  // results that backward reads
  const Choices* pinned = nullptr;
  const std::vector<AxisPlacements>* kept = nullptr;  // pinned results; empty: as they come

  bool any_gradient() const;
};

/// All ways that propagation can carry out: each axis of ranks shards one factor that divides, or
/// none; what is major to a factor in a compound dim is cut to the end; a sum is finished on every
/// rank, or in parts along a dim of the result. The result is never empty.
OpMenu make_menu(const OpCall& call, const OpUse& use, Prices& prices);

}  // namespace tessera
