#include "tessera/search/small_graph.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/operand_floats.h"

namespace tessera {

namespace {

/// The choices of one rule, by the names of factors in another.
Choices renamed(const Choices& choices, const Factors& theirs, const Factors& rule) {
  Choices out;
  for (const Choice choice : choices) {
    const int f = choice < 0 ? -1 : rule.find(theirs.list[at(choice)].name);
    out.push_back(f < 0 ? kReplicate : static_cast<Choice>(f));
  }
  return out;
}

/// The same op on what one rank has of its operands and results.
ProductSize local_product(const Axes& axes, const OpCall& call,
                          const std::vector<AxisPlacements>& in,
                          const std::vector<AxisPlacements>& out) {
  const auto local = [&](TensorType type, const AxisPlacements& on_axes) {
    for (int a = 0; a < axes.count(); ++a) {
      if (on_axes[at(a)] >= 0) type.shape[on_axes[at(a)]] /= axes[a].size;
    }
    return type;
  };
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < in.size(); ++i)
    types.push_back(local(call.in(static_cast<int>(i)), in[i]));
  for (std::size_t r = 0; r < out.size(); ++r)
    types.push_back(local(call.out(static_cast<int>(r)), out[r]));
  OpCall::Types ins, outs;
  for (std::size_t i = 0; i < types.size(); ++i) (i < in.size() ? ins : outs).push_back(&types[i]);
  return call.op().product(OpCall(call.op(), ins, call.attrs(), outs));
}

}  // namespace

Cost work_of(const Prices& prices, const OpCall& call, const Choices& choices, double flops,
             double bytes, const std::vector<AxisPlacements>& in,
             const std::vector<AxisPlacements>& out) {
  if (call.op().view != nullptr) return 0;  // nothing is computed where it is a view
  double ranks = 1, whole = 0, local = 0;
  for (int a = 0; a < prices.axes().count(); ++a) {
    if (choices[at(a)] >= 0) ranks *= static_cast<double>(prices.axes()[a].size);
  }
  const auto add = [&](const TensorType& type, const AxisPlacements& on_axes) {
    const auto n = static_cast<double>(type.bytes());
    whole += n;
    local += n / static_cast<double>(prices.parts(on_axes));
  };
  for (std::size_t i = 0; i < in.size(); ++i) add(call.in(static_cast<int>(i)), in[i]);
  for (std::size_t r = 0; r < out.size(); ++r) add(call.out(static_cast<int>(r)), out[r]);
  KernelWork kernel{flops / ranks, whole > 0 ? bytes * local / whole : 0};
  kernel.dtype = operand_floats(call);
  if (call.op().product != nullptr) {
    const ProductSize size = local_product(prices.axes(), call, in, out);
    kernel.product = {size.m, size.n, size.k, size.attention};
  }
  return prices.work(kernel);
}

SmallGraph::SmallGraph(Graph graph, std::vector<NodeId> given) : graph_(std::move(graph)) {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    Op op;
    const Node& node = graph_.node(id);
    op.given = std::find(given.begin(), given.end(), id) != given.end();
    op.rule = graph_.factors(id);
    if (!node.op->traits.leaf) {
      const OpCall call = graph_.call(id);
      op.flops = node.op->flops == nullptr ? 0 : node.op->flops(call);
      op.bytes = bytes_moved(call);
    }
    ops_.push_back(std::move(op));
  }
}

Placed SmallGraph::place(Prices& prices, std::map<ValueId, AxisPlacements> given,
                         const std::map<ValueId, AxisPlacements>& wanted,
                         const Choices* like) const {
  Placed out;
  out.on_axes = std::move(given);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (ops_[at(id)].given) continue;
    if (node.op->traits.leaf) {
      out.on_axes.try_emplace({id, 0}, prices.axes().whole());
    } else {
      place_op(prices, id, wanted, like, out);
    }
  }
  return out;
}

void SmallGraph::place_op(Prices& prices, NodeId id,
                          const std::map<ValueId, AxisPlacements>& wanted, const Choices* like,
                          Placed& out) const {
  const Node& node = graph_.node(id);
  const Op& op = ops_[at(id)];
  Undecided undecided;
  undecided.rule = &op.rule;
  undecided.expands = node.op->expand != nullptr;
  for (const ValueId input : node.inputs)
    undecided.ins.push_back({&graph_.type(input), out.on_axes.at(input)});
  std::vector<Undecided::WantedPlacement> wishes(node.results.size());
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    undecided.outs.push_back(&node.results[r].type);
    const auto found = wanted.find({id, static_cast<std::int32_t>(r)});
    if (found != wanted.end()) wishes[r].on_axes = found->second;
    undecided.wanted.push_back(found == wanted.end() ? nullptr : &wishes[r]);
  }
  Choices inherited;
  if (node.like >= 0 && like != nullptr) {
    inherited = renamed(*like, ops_[at(node.like)].rule, op.rule);
    undecided.inherited = &inherited;
  }
  const Choices choices = decide(undecided, prices.axes()).choices;
  std::vector<AxisPlacements> ins, outs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    ins.push_back(required(undecided, choices, static_cast<int>(i), prices.axes()));
    AxisPlacements& have = out.on_axes.at(input);
    // A sum is finished once, for all who read it.
    const bool finished = std::ranges::any_of(have, is_partial);
    out.cost += prices.move(graph_.type(input), have, ins.back(),
                            finished ? Traffic::Finish : Traffic::Between);
    if (finished) have = ins.back();
  }
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    outs.push_back(natural(op.rule, choices, static_cast<int>(r), prices.axes()));
    out.on_axes[{id, static_cast<std::int32_t>(r)}] = outs.back();
  }
  out.cost += work_of(prices, graph_.call(id), choices, op.flops, op.bytes, ins, outs);
}

}  // namespace tessera
