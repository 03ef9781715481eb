#pragma once
/// What a strategy decides of single ops, in the factors of their rules.

#include <map>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/passes/decide.h"

namespace tessera {

/// True where a strategy may shard a factor of this kind. What is streamed, exchanged or whole it
/// may not.
bool may_shard(const OpDef& op, FactorKind kind);

/// One op as it was told to be spread.
struct Telling {
  Choices choices;           // per axis; nothing is told of axes of time
  std::vector<Stands> outs;  // per result, where that was told
};

class Told {
 public:
  /// Ops that the graph lacks are passed over: another program has them.
  /// Errors: operands that lie so that the rule of their op cannot say it. The message has all.
  Told(const Graph& graph, const Strategy& strategy, const Axes& axes);

  /// nullptr where nothing is told.
  const Telling* of(NodeId id) const {
    const auto found = told_.find(id);
    return found == told_.end() ? nullptr : &found->second;
  }

 private:
  std::map<NodeId, Telling> told_;
};

}  // namespace tessera
