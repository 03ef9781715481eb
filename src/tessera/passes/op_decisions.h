#pragma once
/// The pins of single ops in a strategy, as factors of their rules.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/passes/decide.h"

namespace tessera {

/// True if a strategy may shard a factor of this kind: not one that is streamed, exchanged or
/// whole.
bool may_shard(const OpDef& op, FactorKind kind);

/// Errors: a bool is pinned to a sum: true + true is no bool. `what` names the value.
void require_sums(const Sharding& pin, const TensorType& type, std::string_view what);

/// How one op is pinned.
struct OpDecision {
  Choices choices;                   // per axis; axes of time are never pinned
  std::vector<AxisPlacements> outs;  // per result, if results are pinned
};

class OpDecisions {
 public:
  /// Ops that the graph lacks are passed over: another program has them.
  /// Errors: operands that lie so that the rule of their op cannot say it. The message has all.
  OpDecisions(const Graph& graph, const Strategy& strategy, const Axes& axes);

  /// nullptr if the op is not pinned.
  const OpDecision* of(NodeId id) const {
    const auto found = decisions_.find(id);
    return found == decisions_.end() ? nullptr : &found->second;
  }

 private:
  std::map<NodeId, OpDecision> decisions_;
};

}  // namespace tessera
