#include "tessera/search/recursive.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/op_paths.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/propagate.h"

namespace tessera {

namespace {

class Rounds {
 public:
  Rounds(const Graph& graph, PlacementProblem& problem, double price)
      : graph_(graph), problem_(problem), prices_(problem.prices()), price_(price) {
    picks_.assign(at(graph.size()), -1);
    readers_.resize(at(graph.size()));
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (problem.decision_of(id) < 0) continue;
      ops_.push_back(id);
      for (std::size_t i = 0; i < graph.node(id).inputs.size(); ++i)
        readers_[at(graph.node(id).inputs[i].node)].push_back({id, static_cast<int>(i)});
    }
    std::stable_sort(ops_.begin(), ops_.end(), [&](NodeId a, NodeId b) {
      const OpMenu &first = problem.menu_of(a), &second = problem.menu_of(b);
      return std::pair(first.flops, first.moved_bytes) >
             std::pair(second.flops, second.moved_bytes);
    });
  }

  Allowed run() {
    const Axes& axes = prices_.axes();
    for (const NodeId id : ops_) picks_[at(id)] = uncut(id);
    for (int axis = 0; axis < axes.count(); ++axis) {
      if (axes.is_time(axis)) continue;
      for (const NodeId id : ops_) cut(id, axis);
    }
    Allowed out(at(problem_.decisions().size()));
    for (const NodeId id : ops_) out[at(problem_.decision_of(id))] = {picks_[at(id)]};
    return out;
  }

 private:
  struct Reader {
    NodeId node;
    int operand;
  };

  const OpOption& option(NodeId id) const {
    return problem_.menu_of(id).options[at(picks_[at(id)])];
  }

  /// Before any round: whole, or as the user pinned it.
  int uncut(NodeId id) const {
    const std::vector<OpOption>& options = problem_.menu_of(id).options;
    for (std::size_t o = 0; o < options.size(); ++o) {
      const bool whole = std::ranges::all_of(options[o].choices, [](Choice c) { return c < 0; });
      if (whole) return static_cast<int>(o);
    }
    return 0;
  }

  void cut(NodeId id, int axis) {
    const OpMenu& menu = problem_.menu_of(id);
    const Choices before = option(id).choices;
    Cost least = kNever;
    int best = picks_[at(id)];
    for (std::size_t o = 0; o < menu.options.size(); ++o) {
      const Choices& choices = menu.options[o].choices;
      bool goes_on = true;
      for (int a = 0; a < prices_.axes().count(); ++a) {
        if (a != axis) goes_on = goes_on && choices[at(a)] == before[at(a)];
      }
      if (!goes_on) continue;
      picks_[at(id)] = static_cast<int>(o);
      const Cost cost =
          menu.costs->costs[o] + std::round(price_ * menu.costs->bytes[o]) + around(id);
      if (cost < least) least = cost, best = static_cast<int>(o);
    }
    picks_[at(id)] = best;
  }

  /// The cost of moves between an op and its neighbours.
  Cost around(NodeId id) const {
    Cost out = 0;
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      const AxisPlacements &needs = option(id).ins[i], &back = option(id).gradients[i];
      const TensorType& type = graph_.type(v);
      if (problem_.decision_of(v.node) >= 0) {
        out += between(type, option(v.node).kept[at(v.index)], needs, back);
      } else if (graph_.node(v.node).op == &kState) {
        if (back.size() > 0)  // it lies as it is read
          out += prices_.move(type, back, needs, Traffic::Parameter);
        out += std::round(price_ * 4 * static_cast<double>(type.bytes()) /
                          static_cast<double>(prices_.parts(needs)));
      } else {
        out += prices_.move(type, problem_.stands_of(v.node), needs, Traffic::Between);
      }
    }
    for (const Reader& reader : readers_[at(id)]) {
      const ValueId v = graph_.node(reader.node).inputs[at(reader.operand)];
      const OpOption& theirs = option(reader.node);
      out += between(graph_.type(v), option(id).kept[at(v.index)], theirs.ins[at(reader.operand)],
                     theirs.gradients[at(reader.operand)]);
    }
    return out;
  }

  Cost between(const TensorType& type, const AxisPlacements& kept, const AxisPlacements& needs,
               const AxisPlacements& back) const {
    const Cost there = prices_.move(type, kept, needs, Traffic::Between);
    if (back.size() == 0) return there;
    const bool sum = std::ranges::any_of(back, is_partial);
    return there + prices_.move(type, back, kept, sum ? Traffic::Finish : Traffic::Between);
  }

  const Graph& graph_;
  PlacementProblem& problem_;
  Prices& prices_;
  double price_;                              // of a byte
  std::vector<NodeId> ops_;                   // by decreasing work
  std::vector<int> picks_;                    // per node
  std::vector<std::vector<Reader>> readers_;  // per node
};

/// What is written as other ops, as a norm across ranks, shifts the numbers in the paths of those.
bool same_types(const Graph& placed, const Node& there, const Graph& graph, const Node& here) {
  if (there.op != here.op || there.inputs.size() != here.inputs.size()) return false;
  for (std::size_t i = 0; i < here.inputs.size(); ++i) {
    if (!(placed.type(there.inputs[i]) == graph.type(here.inputs[i]))) return false;
  }
  return there.type() == here.type();
}

}  // namespace

Solution solve_recursively(const Graph& graph, PlacementProblem& problem,
                           const SolveLimits& limits) {
  Solution out;
  Allowed before;
  double price = 0;
  for (int attempt = 0; attempt < 30; ++attempt) {
    const Allowed allowed = Rounds(graph, problem, price).run();
    if (allowed != before) out = solve_restricted(problem.decisions(), allowed, limits);
    if (out.cost < kNever) return out;
    before = allowed;
    price = price == 0 ? 1e-3 : 4 * price;
  }
  return out;
}

Solution solve_by_propagation(const Graph& graph, const Strategy& strategy, const Machine& machine,
                              const PlacementProblem& problem) {
  const Graph placed = propagate(add_uses(graph), strategy, machine);
  const Axes axes(strategy, machine);
  std::map<std::string, NodeId> nodes;
  const std::vector<std::string> there = op_paths(placed), here = op_paths(graph);
  for (NodeId id = 0; id < placed.size(); ++id) {
    if (!there[at(id)].empty() && !placed.node(id).op->traits.leaf)
      nodes.emplace(there[at(id)], id);
  }
  Allowed allowed(at(problem.decisions().size()));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const int decision = problem.decision_of(id);
    const auto found = nodes.find(here[at(id)]);
    if (decision < 0 || found == nodes.end()) continue;
    const Node& node = placed.node(found->second);
    if (!same_types(placed, node, graph, graph.node(id))) continue;
    std::vector<AxisPlacements> ins;
    for (const ValueId input : node.inputs) {
      ins.push_back(axes.read(placed.result(input).placement->sharding));
      for (int a = 0; a < axes.count(); ++a) {
        if (axes.is_time(a)) ins.back()[at(a)] = kWhole;
      }
    }
    const std::vector<OpOption>& options = problem.menu_of(id).options;
    for (std::size_t o = 0; o < options.size(); ++o) {
      if (options[o].ins == ins) allowed[at(decision)].push_back(static_cast<int>(o));
    }
  }
  Solution out = solve_restricted(problem.decisions(), allowed);
  out.bound = 0;
  return out;
}

}  // namespace tessera
