#include "tessera/passes/propagate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tessera/ir/builder.h"

namespace tessera {

namespace {

/// How one value stands on one axis.
struct Stand {
  enum Kind { Whole, Sharded, Partial } kind = Whole;
  int dim = -1;  // Sharded
};

class TimeAxis {
 public:
  TimeAxis(const Graph& graph, const Strategy& strategy, std::string axis)
      : graph_(graph),
        strategy_(strategy),
        axis_(std::move(axis)),
        stands_(graph.nodes().size()),
        begin_(before_first_microbatch(graph)) {}

  void run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      auto& results = stands_[static_cast<std::size_t>(id)];
      results.resize(graph_.node(id).results.size());
      if (graph_.node(id).op == &kBatch) {
        results[0] = batch(id);
      } else if (!graph_.node(id).op->traits.leaf && !begin_[static_cast<std::size_t>(id)]) {
        results = decide(id);
      }
    }
  }

  Stand at(ValueId v) const {
    return stands_[static_cast<std::size_t>(v.node)][static_cast<std::size_t>(v.index)];
  }

 private:
  /// Batch-only nodes that reduce a batch dim, with their ancestors, see the whole batch: the token
  /// count.
  static std::vector<bool> before_first_microbatch(const Graph& graph) {
    std::vector<bool> batch_only(graph.nodes().size(), false), begin(graph.nodes().size(), false);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      bool any = false, only = !node.inputs.empty();
      for (const ValueId input : node.inputs) {
        const bool constant = graph.node(input.node).op == &kConstant;
        any = any || !constant;
        only = only && (constant || batch_only[static_cast<std::size_t>(input.node)]);
      }
      batch_only[static_cast<std::size_t>(id)] = node.op == &kBatch || (only && any);
    }
    std::vector<NodeId> stack;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (!batch_only[static_cast<std::size_t>(id)] || node.inputs.empty() ||
          graph.type(node.inputs[0]).ndim() == 0) {
        continue;
      }
      const Factors rule = graph.factors(id);
      const std::vector<int>& outer = rule.ins[0][0];
      if (!outer.empty() && rule.reduces(outer[0], 0)) stack.push_back(id);
    }
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (begin[static_cast<std::size_t>(id)] || graph.node(id).op->traits.leaf) continue;
      begin[static_cast<std::size_t>(id)] = true;
      for (const ValueId input : graph.node(id).inputs) stack.push_back(input.node);
    }
    return begin;
  }

  Stand batch(NodeId id) const {
    const TensorType& type = graph_.node(id).type();
    if (type.ndim() == 0) return {};
    require(type.shape[0] % strategy_.mesh.size(axis_) == 0, "batch input '",
            std::get<std::string>(graph_.node(id).attrs[0]), "' has ", type.shape[0],
            " rows, which ", strategy_.mesh.size(axis_),
            " micro-batches do not divide; choose a micro-batch size that divides it");
    return {Stand::Sharded, 0};
  }

  [[noreturn]] void needs_sum(NodeId id) const {
    fail(Fault::Usage, graph_.node(id).op->name,
         " needs a sum over mb: it reads, inside a micro-batch, a value that is"
         " complete only after the last one; run it with one micro-batch, or keep it out of the "
         "model\n    ",
         describing(graph_, id));
  }

  std::vector<Stand> decide(NodeId id) const {
    const Node& node = graph_.node(id);
    const Factors rule = graph_.factors(id);
    int factor = -1;
    bool partial = false, all_partial = !node.inputs.empty();
    for (const ValueId input : node.inputs) {
      partial = partial || at(input).kind == Stand::Partial;
      all_partial = all_partial && at(input).kind == Stand::Partial;
    }
    // Batch inputs are stored whole: they take the factor that others bring.
    for (const bool batch_inputs : {false, true}) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Stand have = at(node.inputs[i]);
        const bool is_batch = graph_.node(node.inputs[i].node).op == &kBatch;
        if (have.kind != Stand::Sharded || is_batch != batch_inputs || (is_batch && factor >= 0))
          continue;
        const std::vector<int>& fs = rule.ins[i][static_cast<std::size_t>(have.dim)];
        const int found = fs.empty() ? -1 : fs[0];
        require(found >= 0 && (factor < 0 || found == factor), node.op->name,
                " cannot be cut into micro-batches: its rule is ", rule, "\n    ",
                describing(graph_, id));
        factor = found;
      }
    }
    if (factor < 0 && node.cotangent && node.cotangent->final) factor = demanded(id, rule);
    std::vector<Stand> out(node.results.size());
    if (factor < 0) {
      // A joint sum of accumulating terms stays inside the micro-batch: one accumulator.
      if (all_partial && rule.linear == Linear::Joint) out[0] = {Stand::Partial, -1};
      return out;
    }
    const FactorKind kind = rule.list[static_cast<std::size_t>(factor)].kind;
    require(kind == FactorKind::Pass, node.op->name,
            " mixes rows of the batch, so it cannot be cut into micro-batches:", " its rule is ",
            rule, "\n    ", describing(graph_, id));
    if (partial) needs_sum(id);
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (rule.reduces(factor, static_cast<int>(r))) {
        out[r] = {Stand::Partial, -1};
        continue;
      }
      for (std::size_t d = 0; d < rule.outs[r].size(); ++d) {
        const std::vector<int>& fs = rule.outs[r][d];
        if (!fs.empty() && fs[0] == factor) out[r] = {Stand::Sharded, static_cast<int>(d)};
      }
    }
    return out;
  }

  /// An operand-free factor (a broadcast cotangent) lies where its primal lies.
  int demanded(NodeId id, const Factors& rule) const {
    const Stand primal = at(graph_.node(id).cotangent->of);
    if (primal.kind != Stand::Sharded) return -1;
    const std::vector<int>& fs = rule.outs[0][static_cast<std::size_t>(primal.dim)];
    return !fs.empty() && rule.list[static_cast<std::size_t>(fs[0])].kind == FactorKind::Pass
               ? fs[0]
               : -1;
  }

  const Graph& graph_;
  const Strategy& strategy_;
  std::string axis_;
  std::vector<std::vector<Stand>> stands_;
  std::vector<bool> begin_;
};

}  // namespace

Graph propagate(const Graph& graph, const Strategy& strategy) {
  const std::string axis(kMicrobatchAxis);
  const bool cut = strategy.mesh.has(axis);
  TimeAxis time(graph, strategy, axis);
  if (cut) time.run();
  Builder placed(Form::Placed, strategy.mesh);
  // Values that lie alike share what says so.
  std::map<std::tuple<int, Stand::Kind, int>, Shared<Placement>> known;
  const auto placement = [&](int ndim, Stand stand) {
    Shared<Placement>& out = known[{ndim, stand.kind, stand.dim}];
    if (out) return out;
    Sharding sharding = Sharding::replicated(ndim);
    if (stand.kind == Stand::Sharded) sharding = sharding.with(axis, stand.dim);
    if (stand.kind == Stand::Partial) sharding = sharding.with_partial(axis, Monoid::Sum);
    return out = Placement{std::move(sharding), Memory::Device};
  };
  // Ids are kept: the graph is the same, with placements.
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph.node(id);
    for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
      Result& result = node.results[static_cast<std::size_t>(i)];
      result.placement = placement(result.type.ndim(), cut ? time.at({id, i}) : Stand{});
    }
    ValueIds inputs = node.inputs;
    placed.copy(std::move(node), std::move(inputs));
  }
  for (const State& state : graph.states()) {
    State kept = state;
    kept.home = kept.use = placement(graph.type(state.value).ndim(), {});
    placed.add_state(std::move(kept));
  }
  for (const Output& output : graph.outputs())
    placed.output(output.kind, output.name, Value(placed, output.value));
  return placed.finish();
}

}  // namespace tessera
