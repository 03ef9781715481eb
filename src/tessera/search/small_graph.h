#pragma once
/// A few ops that go with one op, its gradient or its expansion, placed and priced as propagation
/// would place them.

#include <map>
#include <vector>

#include "tessera/passes/decide.h"
#include "tessera/search/prices.h"

namespace tessera {

/// A placed graph: the cost of moving and computing, and the placements of its values.
struct Placed {
  Cost cost = 0;
  std::map<ValueId, AxisPlacements> on_axes;
};

class SmallGraph {
 public:
  /// `graph`: in Form::Global. Nodes of `given` are not computed here: where their results lie is
  /// said.
  SmallGraph(Graph graph, std::vector<NodeId> given);

  /// `wanted`: where results would best lie. `like`: the factors of a given node, for those whose
  /// gradients they are.
  Placed place(Prices& prices, std::map<ValueId, AxisPlacements> given,
               const std::map<ValueId, AxisPlacements>& wanted, const Choices* like) const;
  const Graph& graph() const { return graph_; }
  const Factors& rule(NodeId id) const { return ops_[static_cast<std::size_t>(id)].rule; }

 private:
  struct Op {
    Factors rule;
    double flops = 0, bytes = 0, whole = 0;  // bytes as the op counts them; of all its values
    bool given = false;
  };
  void place_op(Prices& prices, NodeId id, const std::map<ValueId, AxisPlacements>& wanted,
                const Choices* like, Placed& out) const;

  Graph graph_;
  std::vector<Op> ops_;
};

/// Work of one op of which ranks compute such parts. `in` and `out`: where operands and results lie
/// while it runs. The kernel has the price that predictions of plans give it (plan/price.h).
Cost work_of(const Prices& prices, const OpCall& call, const Choices& choices, double flops,
             double bytes, const std::vector<AxisPlacements>& in,
             const std::vector<AxisPlacements>& out);

}  // namespace tessera
