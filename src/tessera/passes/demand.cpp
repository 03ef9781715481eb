#include "tessera/passes/demand.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/decide.h"

namespace tessera {

namespace {

bool passes_demands(const Factors& rule, int result) {
  for (int f = 0; f < static_cast<int>(rule.list.size()); ++f) {
    if (rule.reduces(f, result) || rule.list[at(f)].kind == FactorKind::Stat) return false;
  }
  return true;
}

/// The axes of a result's demand, on the dims of an operand.
AxisPlacements carried(const Factors::Dims& dims, const Choices& factors, const Axes& axes) {
  AxisPlacements out = axes.whole();
  for (int a = 0; a < axes.count(); ++a) {
    if (factors[at(a)] < 0) continue;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (std::find(dims[d].begin(), dims[d].end(), factors[at(a)]) != dims[d].end())
        out[at(a)] = static_cast<AxisPlacement>(d);
    }
  }
  return out;
}

}  // namespace

Demands find_demands(const Graph& graph, const StatePlaces& places, const OpDecisions& decisions,
                     const Axes& axes) {
  Demands out(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (const Sharding* pin = places.pinned(node)) {
      require(pin->ndim() == node.type().ndim(), "value '", node.name, "' is a ", node.type(),
              ", but is pinned to ", *pin, "; give it ", node.type().ndim(), " dims\n    ",
              describing(graph, id));
      require_sums(*pin, node.type(), text("value '", node.name, "'"));
      out[{id, 0}] = {axes.read(*pin), Firmness::Hard};
    }
    if (node.op == &kUse)
      out[{id, 0}] = {places.of(std::get<std::string>(node.attrs[0])).use, Firmness::Hard};
    if (node.op == &kGradient && node.cotangent) {
      const Node& parameter = graph.node(node.cotangent->of.node);
      out[{id, 0}] = {places.of(std::get<std::string>(parameter.attrs[0])).gradient,
                      Firmness::Hard};
    }
  }
  for (const Output& output : graph.outputs()) {
    if (output.kind != Output::Kind::Next) continue;
    if (graph.node(output.value.node).op != &kState)
      out[output.value] = {places.of(output.name).home, Firmness::Hard};
  }
  for (NodeId id = graph.size(); id-- > 0;) {
    const Node& node = graph.node(id);
    if (node.op->traits.leaf || node.phase == Phase::Backward) continue;
    if (const OpDecision* decision = decisions.of(id)) {
      const Factors rule = graph.factors(id);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId v = node.inputs[i];
        if (!out[v] && !graph.node(v.node).op->traits.leaf)
          out[v] = {carried(rule.ins[i], decision->choices, axes), Firmness::Soft};
      }
      for (std::size_t r = 0; r < decision->outs.size(); ++r)
        out[{id, static_cast<std::int32_t>(r)}] = {decision->outs[r], Firmness::Hard};
      continue;
    }
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
      const std::optional<Demand>& demand = out[{id, r}];
      if (!demand) continue;
      const Factors rule = graph.factors(id);
      if (!passes_demands(rule, r)) continue;
      const auto open = [&](ValueId v) {
        const OpDef* op = graph.node(v.node).op;
        return !op->traits.leaf && !(out[v] && out[v]->firmness == Firmness::Hard);
      };
      const auto open_operands = std::count_if(node.inputs.begin(), node.inputs.end(), open);
      const bool joins = rule.linear == Linear::Joint && open_operands > 1;
      const Firmness firmness =
          demand->firmness == Firmness::Hint || joins ? Firmness::Hint : Firmness::Soft;
      const Choices factors = factors_on_axes(rule, rule.outs[at(r)], demand->on_axes, axes);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId v = node.inputs[i];
        if (out[v] || graph.node(v.node).op->traits.leaf ||
            graph.type(v).ndim() != node.results[at(r)].type.ndim())
          continue;
        out[v] = {carried(rule.ins[i], factors, axes), firmness};
      }
    }
  }
  return out;
}

}  // namespace tessera
