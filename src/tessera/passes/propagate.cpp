#include "tessera/passes/propagate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/expansion.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/before_loop.h"
#include "tessera/passes/decide.h"
#include "tessera/passes/demand.h"
#include "tessera/passes/refusals.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// The path in a `state` or `use` node, or that of the parameter whose gradient a node ends.
const std::string& path_of(const Node& node) { return std::get<std::string>(node.attrs[0]); }

/// A value of the placed graph, and its placement.
struct PlacedValue {
  Value value;
  AxisPlacements on_axes;
  const Node* use = nullptr;  // that it is read through: a state
  ValueId rows_of = {};       // Undecided::Operand::rows_of
};
using PlacedValues = std::vector<PlacedValue>;
using ResultDemands = std::vector<const Demand*>;  // of each result of a node; nullptr: none

class Propagation {
 public:
  Propagation(const Graph& graph, const Strategy& strategy, const Machine& machine)
      : graph_(graph),
        strategy_(strategy),
        axes_(strategy, machine),
        places_(graph, strategy, axes_),
        decisions_(graph, strategy, axes_),
        demands_(find_demands(graph, places_, decisions_, axes_)),
        before_loop_(nodes_before_loop(graph)),
        placed_(Form::Placed, strategy.mesh),
        kept_(graph),
        choices_(graph.nodes().size()) {
    for (const Node& node : graph.nodes()) {
      if (node.op == &kGradient)
        accumulators_.emplace(node.inputs[0], places_.of(path_of(node)).accumulator);
    }
  }

  Graph run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.op->traits.leaf) {
        leaf(id);
      } else if (node.op == &kUse) {
        kept_[{id, 0}] = kept_[node.inputs[0]];
        kept_[{id, 0}].use = &node;  // placed where it is read, as it is needed there
      } else {
        visit(id);
      }
    }
    require(refused_.empty(), join(refused_, "\n"));
    for (State state : graph_.states()) {
      const int ndim = graph_.type(state.value).ndim();
      state.home = axes_.write(places_.of(state.path).home, ndim);
      state.use = axes_.write(places_.of(state.path).use, ndim);
      state.value = kept_[state.value].value.id();
      placed_.add_state(std::move(state));
    }
    for (const Output& output : graph_.outputs()) leave(output);
    return placed_.finish();
  }

 private:
  void leaf(NodeId id);
  void visit(NodeId id);
  PlacedValues place(const Node& node, const PlacedValues& ins, Undecided undecided,
                     const ResultDemands& demands, Choices* chosen);
  PlacedValues expand(const Node& node, const PlacedValues& ins, const ResultDemands& demands);
  PlacedValue reshard(const PlacedValue& from, const AxisPlacements& to, const Node& reader);
  AxisPlacements settled(const AxisPlacements& natural, const Demand* demand) const;
  void leave(const Output& output);
  /// A copy is placed as the node that it repeats.
  NodeId original_of(NodeId id) const {
    const NodeId original = graph_.node(id).remat_of;
    return original >= 0 ? original : id;
  }
  Undecided undecided_of(NodeId id, const PlacedValues& ins) const;
  Choices inherited(NodeId id, const Factors& rule) const;
  PlacedValue accumulating(ValueId v, const PlacedValue& value);
  void check_microbatches(NodeId id) const;

  const Graph& graph_;
  const Strategy& strategy_;
  Axes axes_;
  StatePlaces places_;
  OpDecisions decisions_;
  Demands demands_;
  std::vector<bool> before_loop_;
  Builder placed_;
  ValueTable<PlacedValue> kept_;
  /// Of what the gradient of a parameter sums up to.
  std::map<ValueId, AxisPlacements> accumulators_;
  std::vector<Choices> choices_;  // per node; empty for leaves
  std::map<std::tuple<ValueId, const Node*, int, int>, PlacedValues>
      resharded_;  // by use, phase and stage of who reads it, -1: for all
  std::vector<std::string> refused_;
};

void Propagation::leaf(NodeId id) {
  Node node = graph_.node(id);
  node.cotangent.reset();
  AxisPlacements on_axes = axes_.whole();
  if (node.op == &kState) on_axes = places_.of(path_of(node)).home;
  if (node.op == &kBatch) {
    check_microbatches(id);
    on_axes = places_.stored_batch(node);
  }
  node.results[0].placement = axes_.write(on_axes, node.type().ndim());
  kept_[{id, 0}] = {placed_.copy(std::move(node), {})[0], on_axes};
}

void Propagation::check_microbatches(NodeId id) const {
  const TensorType& type = graph_.node(id).type();
  const std::int64_t n = strategy_.mesh.size(kMicrobatchAxis);
  const int axis = axes_.find(kMicrobatchAxis);
  const AxisPlacements on_axes = places_.batch(graph_.node(id));
  if (axis < 0 || on_axes[at(axis)] < 0) return;
  const std::int64_t rows = type.shape[on_axes[at(axis)]];
  require(rows % n == 0, "batch input '", std::get<std::string>(graph_.node(id).attrs[0]), "' has ",
          rows, " rows, which ", n,
          " micro-batches do not divide; choose a micro-batch size that divides it");
}

/// Operands as a node of the source graph reads them: states as the strategy has them used, batch
/// inputs cut by time.
Undecided Propagation::undecided_of(NodeId id, const PlacedValues& ins) const {
  const Node& node = graph_.node(id);
  Undecided out;
  out.before_loop = before_loop_[at(original_of(id))];
  out.parts = node.phase == Phase::Forward;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    const ValueId v = node.inputs[i], original{original_of(v.node), v.index};
    const Node& source = graph_.node(v.node);
    Undecided::Operand in{&graph_.type(v), ins[i].on_axes, original, ins[i].rows_of};
    check(source.op != &kState || node.phase == Phase::Update,
          "a state is read without a use: ", describing(graph_, id));
    if (source.op == &kUse) {
      in.have = places_.of(path_of(source)).use;
      in.bound = true;
    }
    if (source.op == &kBatch && !out.before_loop) {
      in.have = places_.batch(source);
      in.whole_in_time = true;
    }
    out.ins.push_back(std::move(in));
  }
  return out;
}

void Propagation::visit(NodeId id) {
  const Node& node = graph_.node(id);
  const NodeId original = original_of(id);
  PlacedValues ins;
  for (const ValueId input : node.inputs) ins.push_back(kept_[input]);
  Undecided undecided = undecided_of(id, ins);
  ResultDemands demands;
  for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
    const std::optional<Demand>& demand = demands_[{original, r}];
    demands.push_back(demand ? &*demand : nullptr);
  }
  // A gradient lies where the value lies whose gradient it is; one of a state is finished later.
  Demand mirrored;
  if (node.cotangent && demands[0] == nullptr) {
    const Node& primal = graph_.node(node.cotangent->of.node);
    if (primal.op == &kState) {
      mirrored = {places_.of(path_of(primal)).use, Firmness::Hint};
      undecided.deferred = true;
      demands[0] = &mirrored;
    } else if (!primal.op->traits.leaf) {
      mirrored = {with_rows_alone(kept_[node.cotangent->of].on_axes),
                  node.cotangent->final ? Firmness::Hard : Firmness::Hint};
      demands[0] = &mirrored;
    }
  }
  Choices from_other;
  const Factors rule = graph_.factors(id);
  undecided.rule = &rule;
  if (const OpDecision* decision = decisions_.of(original)) undecided.pinned = &decision->choices;
  if (original != id) {
    undecided.repeated = &choices_[at(original)];
  } else if (node.like >= 0 && !choices_[at(node.like)].empty()) {
    from_other = inherited(node.like, rule);
    undecided.inherited = &from_other;
  }
  PlacedValues results = place(node, ins, undecided, demands, &choices_[at(id)]);
  for (int r = 0; r < static_cast<int>(results.size()); ++r) {
    results[at(r)].rows_of = rows_of(undecided, choices_[at(id)]);
    kept_[{id, r}] = accumulating({id, r}, results[at(r)]);
  }
}

/// An accumulator of micro-batches, sharded as the strategy says.
PlacedValue Propagation::accumulating(ValueId v, const PlacedValue& value) {
  const auto found = accumulators_.find(v);
  if (found == accumulators_.end()) return value;
  AxisPlacements to = value.on_axes;
  for (int a = 0; a < axes_.count(); ++a) {
    if (to[at(a)] == kPartialSum && found->second[at(a)] >= 0) to[at(a)] = found->second[at(a)];
  }
  return reshard(value, to, graph_.node(v.node));
}

/// The choices of another node, as factors of this rule.
Choices Propagation::inherited(NodeId id, const Factors& rule) const {
  const Factors theirs = graph_.factors(id);
  Choices out;
  for (const Choice choice : choices_[at(id)]) {
    const int f = choice < 0 ? -1 : rule.find(theirs.list[at(choice)].name);
    out.push_back(f < 0 ? kReplicate : static_cast<Choice>(f));
  }
  return out;
}

PlacedValues Propagation::place(const Node& node, const PlacedValues& ins, Undecided undecided,
                                const ResultDemands& demands, Choices* chosen) {
  const Factors& rule = *undecided.rule;
  undecided.expands = node.op->expand != nullptr;
  undecided.zero_where = node.op->zero_where;
  std::vector<Undecided::WantedPlacement> wanted(demands.size());
  for (std::size_t r = 0; r < demands.size(); ++r) {
    undecided.outs.push_back(&node.results[r].type);
    if (demands[r] != nullptr)
      wanted[r] = {demands[r]->on_axes, demands[r]->firmness != Firmness::Hint};
    undecided.wanted.push_back(demands[r] == nullptr ? nullptr : &wanted[r]);
  }
  NodeDecision decided = undecided.repeated != nullptr ? NodeDecision{*undecided.repeated, {}}
                                                       : decide(undecided, axes_);
  if (decided.stuck >= 0) refuse_time(node, undecided, decided.stuck);
  // Between pinned ops, and where an op says so, what is lost is gathered.
  if (strategy_.ops.empty() && !gathers_parts(node))
    for (const auto& one : decided.lost) refused_.push_back(why_lost(node, undecided, one, axes_));
  if (chosen != nullptr) *chosen = decided.choices;
  const bool stat = std::any_of(decided.choices.begin(), decided.choices.end(), [&](Choice c) {
    return c >= 0 && rule.list[at(c)].kind == FactorKind::Stat;
  });
  const auto as_required = [&](std::size_t i) {
    return reshard(ins[i], required(undecided, decided.choices, static_cast<int>(i), axes_), node);
  };
  if (stat) {
    PlacedValues lying = ins;  // as the user said, or as they come
    for (std::size_t i = 0; i < ins.size() && undecided.pinned != nullptr; ++i)
      lying[i] = as_required(i);
    return expand(node, lying, demands);
  }

  ValueIds operands;
  for (std::size_t i = 0; i < ins.size(); ++i) operands.push_back(as_required(i).value.id());
  Node copy = node;
  copy.cotangent.reset();  // what they said has been decided
  copy.like = copy.remat_of = -1;
  PlacedValues out(node.results.size());
  for (std::size_t r = 0; r < out.size(); ++r) {
    out[r].on_axes = natural(rule, decided.choices, static_cast<int>(r), axes_);
    copy.results[r].placement = axes_.write(out[r].on_axes, node.results[r].type.ndim());
  }
  const std::vector<Value> values = placed_.copy(std::move(copy), std::move(operands));
  for (std::size_t r = 0; r < out.size(); ++r) {
    out[r].value = values[r];
    out[r] = reshard(out[r], settled(out[r].on_axes, demands[r]), node);
  }
  return out;
}

/// The primitive ops that a stat op consists of, placed by the same rule.
PlacedValues Propagation::expand(const Node& node, const PlacedValues& ins,
                                 const ResultDemands& demands) {
  Builder parts;
  parts.set_mark({node.block, node.phase, node.stage, node.where, node.recompute});
  std::vector<Value> operands;
  OpCall::Types in_types, out_types;
  for (std::size_t i = 0; i < ins.size(); ++i)
    operands.push_back(parts.batch(text("in", i), ins[i].value.type()));
  for (const PlacedValue& in : ins) in_types.push_back(&in.value.type());
  for (const Result& result : node.results) out_types.push_back(&result.type);
  const OpCall whole(*node.op, std::move(in_types), node.attrs, std::move(out_types));
  const std::vector<Value> results = expansion(whole, operands);
  const Graph graph = parts.finish();
  ValueTable<PlacedValue> kept(graph);
  for (std::size_t i = 0; i < ins.size(); ++i) kept[operands[i].id()] = ins[i];
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& part = graph.node(id);
    if (part.op == &kBatch) continue;
    if (part.op->traits.leaf) {
      Node leaf = part;
      leaf.results[0].placement = axes_.write(axes_.whole(), leaf.type().ndim());
      kept[{id, 0}] = {placed_.copy(std::move(leaf), {})[0], axes_.whole()};
      continue;
    }
    PlacedValues part_ins;
    Undecided undecided;
    for (const ValueId input : part.inputs) {
      part_ins.push_back(kept[input]);
      undecided.ins.push_back({&graph.type(input), kept[input].on_axes});
    }
    ResultDemands part_demands(part.results.size(), nullptr);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r].id().node == id) {
        part_demands[at(results[r].id().index)] = demands[r];
      }
    }
    const Factors rule = graph.factors(id);
    undecided.rule = &rule;
    PlacedValues part_results = place(part, part_ins, undecided, part_demands, nullptr);
    for (std::size_t r = 0; r < part_results.size(); ++r)
      kept[{id, static_cast<std::int32_t>(r)}] = std::move(part_results[r]);
  }
  PlacedValues out;
  for (const Value& result : results) out.push_back(kept[result.id()]);
  return out;
}

/// The placement in which a result is kept, on each axis but time: a hard demand is met; a soft one
/// only finishes partial sums; otherwise the result stays as its node made it.
AxisPlacements Propagation::settled(const AxisPlacements& natural, const Demand* demand) const {
  if (demand == nullptr || demand->firmness == Firmness::Hint) return natural;
  AxisPlacements out = natural;
  for (int a = 0; a < axes_.count(); ++a) {
    AxisPlacement& on_axis = out[at(a)];
    const AxisPlacement wanted = demand->on_axes[at(a)];
    if (axes_.is_time(a) || on_axis == wanted) continue;
    const bool can_be_made = wanted != kPartialOne;
    if (is_partial(on_axis) || (can_be_made && demand->firmness == Firmness::Hard))
      on_axis = can_be_made ? wanted : kWhole;
  }
  return out;
}

/// The value in the placement that `reader` needs. A sum is finished once, beside the node that
/// made it. Gathers and slices are shared by the readers of one phase and chunk, and never undone:
/// the value before the move is used instead. A state is moved by its use, for all readers of that.
PlacedValue Propagation::reshard(const PlacedValue& from, const AxisPlacements& to,
                                 const Node& reader) {
  if (from.on_axes == to) return from;
  const Node& mover = placed_.node(from.value);
  if (mover.op == &kReshard && mover.phase == reader.phase && mover.stage == reader.stage) {
    const ValueId before = mover.inputs[0];
    if (placed_.so_far().result(before).placement == axes_.write(to, from.value.ndim()))
      return {{placed_, before}, to};
  }
  bool finishes = false;
  for (int a = 0; a < axes_.count(); ++a)
    finishes = finishes || (is_partial(from.on_axes[at(a)]) && !is_partial(to[at(a)]));
  const bool all = finishes || from.use != nullptr;  // for all who read the value, or the use
  const int phase = all ? -1 : static_cast<int>(reader.phase), stage = all ? -1 : reader.stage;
  PlacedValues& known = resharded_[{from.value.id(), from.use, phase, stage}];
  for (const PlacedValue& one : known) {
    if (one.on_axes == to) return one;
  }
  const Node& marks = finishes              ? placed_.node(from.value)
                      : from.use != nullptr ? *from.use
                                            : reader;
  // What is no use is the same for every micro-batch, and made before the first.
  const bool use = from.use != nullptr && strategy_.gather != GatherScope::Step;
  Node node = marked_like(marks, use ? kUse : kReshard, use ? from.use->attrs : Attrs(),
                          {{from.value.type(), axes_.write(to, from.value.ndim()), {}}});
  known.push_back({placed_.copy(std::move(node), {from.value.id()})[0], to});
  return known.back();
}

/// Next values go home; what the caller reads is whole on every rank, unless it is to stay cut.
void Propagation::leave(const Output& output) {
  PlacedValue kept = kept_[output.value];
  const bool cut =
      std::any_of(strategy_.cut_outputs.begin(), strategy_.cut_outputs.end(),
                  [&](const std::string& pattern) { return matches(pattern, output.name); });
  AxisPlacements to = cut ? without_partials(kept.on_axes) : axes_.whole();
  if (output.kind == Output::Kind::Next) to = places_.of(output.name).home;
  for (int a = 0; a < axes_.count(); ++a) {
    if (axes_.is_time(a) && kept.on_axes[at(a)] >= 0) to[at(a)] = kept.on_axes[at(a)];
  }
  Node reader = graph_.node(output.value.node);
  reader.phase = output.kind == Output::Kind::Next ? Phase::Update : reader.phase;
  kept = reshard(kept, to, reader);
  placed_.output(output.kind, output.name, kept.value);
}

}  // namespace

Graph propagate(const Graph& graph, const Strategy& strategy, const Machine& machine) {
  return Propagation(graph, strategy, machine).run();
}

}  // namespace tessera
