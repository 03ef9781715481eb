#include "tessera/passes/partition.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "tessera/ir/blocks.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ir/value_table.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/moves.h"

namespace tessera {

namespace {

/// The regions of a program, in order.
constexpr std::array kRegions = {RegionKind::Begin, RegionKind::Forward, RegionKind::Backward,
                                 RegionKind::Update};
constexpr std::size_t index(RegionKind kind) {
  return static_cast<std::size_t>(std::ranges::find(kRegions, kind) - kRegions.begin());
}
constexpr RegionKind region_of(Phase phase) {
  return phase == Phase::Forward    ? RegionKind::Forward
         : phase == Phase::Backward ? RegionKind::Backward
                                    : RegionKind::Update;
}

std::vector<std::int64_t> ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

bool on_time(const Result& result) {
  return result.placement->sharding.dim_of(kMicrobatchAxis) >= 0 ||
         result.placement->sharding.is_partial(kMicrobatchAxis);
}

bool accumulates(const Result& result) {
  return result.placement->sharding.is_partial(kMicrobatchAxis);
}

bool gathers_state(const Graph& graph, const Node& node) {
  return node.op == &kReshard && graph.node(node.inputs[0].node).op == &kState &&
         node.phase != Phase::Update;
}

std::vector<RegionKind> assign_regions(const Graph& graph) {
  const std::size_t size = graph.nodes().size();
  std::vector<RegionKind> out(size, RegionKind::Update);
  if (!graph.mesh().has(kMicrobatchAxis)) {
    for (std::size_t i = 0; i < size; ++i) out[i] = region_of(graph.nodes()[i].phase);
    return out;
  }
  std::vector<bool> time(size), before(size, false), at_begin(size, false);
  for (std::size_t i = 0; i < size; ++i) {
    const Node& node = graph.nodes()[i];
    time[i] = !node.op->traits.leaf && std::any_of(node.results.begin(), node.results.end(),
                                                   [](const Result& r) { return on_time(r); });
  }
  for (std::size_t i = size; i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (!time[i] && !before[i]) continue;
    // A state is gathered where it is read, in every micro-batch, unless Begin needs it.
    const bool in_loop = before[i] && !at_begin[i] && gathers_state(graph, node);
    if (in_loop) time[i] = true;
    for (const ValueId input : node.inputs) {
      if (time[static_cast<std::size_t>(input.node)]) continue;
      before[static_cast<std::size_t>(input.node)] = true;
      if (!time[i]) at_begin[static_cast<std::size_t>(input.node)] = true;
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    const Node& node = graph.nodes()[i];
    if (time[i]) {
      out[i] = node.phase == Phase::Forward ? RegionKind::Forward : RegionKind::Backward;
    } else if (before[i]) {
      out[i] = RegionKind::Begin;
      for (const ValueId input : node.inputs) {
        require(!time[static_cast<std::size_t>(input.node)], node.op->name,
                " needs a sum over mb: a micro-batch reads it,",
                " but it is complete only after the last one; run it with one micro-batch, or keep "
                "it out of the model\n",
                "    ", describing(graph, static_cast<NodeId>(i)));
      }
    }
  }
  return out;
}

class Partitioner {
 public:
  Partitioner(const Graph& graph, const Machine& machine, MoveStyle style)
      : graph_(graph),
        style_(style),
        region_(assign_regions(graph)),
        known_(graph),
        padding_(graph),
        redistributor_(graph.mesh(), machine) {
    for (auto& builder : builders_) builder = std::make_unique<Builder>(Form::Local, graph.mesh());
    std::unordered_map<std::string_view, std::int32_t> sizes;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const std::string_view block = block_of(graph.node(id).block);
      place_in_block_.push_back(block.empty() ? id : sizes[block]++);
    }
    for (const State& state : graph.states()) {
      states_[state.value.node] = &state;
      state_named_[state.path] = state.value;
    }
  }

  Program run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).op->traits.leaf) place(id);
    }
    for (const Output& output : graph_.outputs()) {
      // What leaves the step leaves it after the last micro-batch.
      const RegionKind at = graph_.mesh().has(kMicrobatchAxis) || output.kind == Output::Kind::Next
                                ? RegionKind::Update
                                : home(output.value);
      if (output.kind == Output::Kind::Next)
        import(state_named_.at(output.name), at);  // listed where it is written
      builder(at).output(output.kind, output.name, leaving(output, at));
    }
    list_unread();
    for (const ValueId v : handed_) {
      const auto kind =
          accumulates(graph_.result(v)) ? Output::Kind::Accumulate : Output::Kind::Slot;
      builder(home(v)).output(kind, slot_name(v), known_[v][index(home(v))]);
    }
    Program out;
    for (const RegionKind kind : kRegions)
      out.regions.push_back({kind, 0, builders_[index(kind)]->finish()});
    const PipelineSize size{1, 1, graph_.mesh().size(kMicrobatchAxis)};
    out.actions = whole_step(make_schedule("1f1b", size).stages[0]);
    return out;
  }

 private:
  Builder& builder(RegionKind at) { return *builders_[index(at)]; }
  RegionKind home(ValueId v) const { return region_[static_cast<std::size_t>(v.node)]; }
  Result local(const Result& placed) const {
    return {{placed.type.dtype,
             local_shape(placed.type.shape, placed.placement->sharding, graph_.mesh()),
             {}},
            placed.placement,
            placed.type.shape};
  }

  /// Gives a local value another sharding, and so another shape.
  void lie(Result& result, Sharding sharding) const {
    result.type.shape = local_shape(result.logical, sharding, graph_.mesh());
    result.placement = Placement{std::move(sharding), result.placement->memory};
  }

  /// States and batch inputs that nothing reads are inputs all the same: the last region has them.
  void list_unread() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      const auto knows = [](const Value& value) { return value.valid(); };
      if ((node.op == &kState || node.op == &kBatch) &&
          std::none_of(known_[{id, 0}].begin(), known_[{id, 0}].end(), knows))
        import({id, 0}, RegionKind::Update);
    }
  }

  void mark_like(RegionKind at, NodeId id) {
    const Node& node = graph_.node(id);
    builder(at).set_mark({node.block, node.phase, node.stage, node.where});
  }

  /// The value inside region `at`: computed there, an input of it, or a slot that an earlier region
  /// fills.
  Value import(ValueId v, RegionKind at) {
    if (const Value known = known_[v][index(at)]; known.valid()) return known;
    const Node& node = graph_.node(v.node);
    Result result = local(graph_.result(v));
    mark_like(at, v.node);
    Value value;
    if (node.op->traits.leaf) {
      Node leaf = node;
      leaf.results[0] = result;
      leaf.cotangent.reset();
      const int shape = leaf.op->attrs.find("shape");
      if (shape >= 0) {
        leaf.attrs = leaf.attrs.with(static_cast<std::size_t>(shape), ints(result.type.shape));
      }
      value = builder(at).copy(std::move(leaf), {})[0];
      if (node.op == &kState) add_state(at, v.node, value);
    } else {
      value = builder(at).slot(slot_name(v), hand_over(v, std::move(result)));
    }
    known_[v][index(at)] = value;
    return value;
  }

  /// The value of an output. A state's old value is copied, because the state may be overwritten
  /// before the output is read.
  Value leaving(const Output& output, RegionKind at) {
    const Node& node = graph_.node(output.value.node);
    const Sharding& sharding = graph_.result(output.value).placement->sharding;
    require(node.op == &kBatch || sharding.dim_of(kMicrobatchAxis) < 0, "output '", output.name,
            "' cannot be cut into micro-batches: it holds rows of the batch, but only sums over ",
            "them leave the step; reduce it, or run one micro-batch\n    ",
            describing(graph_, output.value.node));
    const Value value = import(output.value, at);
    const bool next = output.kind == Output::Kind::Next;
    if (node.op != &kState) {
      const bool padded =
          !padded_dims(builder(at).so_far().result(value.id()), graph_.mesh()).empty();
      return next && padded ? cleared(output.value, Monoid::Sum, at, node) : value;
    }
    if (next && state_named_.at(output.name) == output.value) return value;
    auto& known = copies_[index(at)];
    if (const auto found = known.find(output.value); found != known.end()) return found->second;
    Node copy = builder(at).node(value);
    copy.op = &kIdentity;
    copy.attrs = {};
    copy.name = {};
    const Value out = builder(at).copy(std::move(copy), {value.id()})[0];
    known.emplace(output.value, out);
    return out;
  }

  /// Named by the place in its block, so that blocks of one class stay alike.
  std::string slot_name(ValueId v) const {
    const std::string_view block = block_of(graph_.node(v.node).block);
    const std::int32_t place = place_in_block_[static_cast<std::size_t>(v.node)];
    return text(block, block.empty() ? "" : ".", "v", place, v.index == 0 ? "" : "_",
                v.index == 0 ? "" : text(v.index));
  }

  /// The home region of `v` will put it out; an accumulator is complete, so no longer partial,
  /// where it is read.
  Result hand_over(ValueId v, Result result) {
    const bool sums = accumulates(result);
    handed_.insert(v);
    if (sums) lie(result, result.placement->sharding.without(kMicrobatchAxis));
    return result;
  }

  void add_state(RegionKind at, NodeId id, Value value) {
    const auto found = states_.find(id);
    check(found != states_.end(), "a state node is not listed: ", describing(graph_, id));
    State state = *found->second;
    state.value = value.id();
    builder(at).add_state(std::move(state));
  }

  void place(NodeId id) {
    if (graph_.node(id).op == &kReshard) {
      move(id);
    } else {
      compute(id);
    }
  }

  /// From where the value lies inside its region: what micro-batches summed is whole in time.
  void move(NodeId id) {
    const Node& node = graph_.node(id);
    const RegionKind at = region_[static_cast<std::size_t>(id)];
    const Value value = import(node.inputs[0], at);
    const Result from = builder(at).so_far().result(value.id());
    const Sharding& to = node.results[0].placement->sharding;
    const std::optional<Redistribution> dim_by_dim = plan_dim_by_dim(
        style_, graph_.mesh(), from.logical, from.type.dtype, from.placement->sharding, to);
    const Redistribution& plan = dim_by_dim ? *dim_by_dim
                                            : redistributor_.plan(from.logical, from.type.dtype,
                                                                  from.placement->sharding, to);
    known_[{id, 0}][index(at)] = add_moves(builder(at), value, plan, to, node);
  }

  void compute(NodeId id) {
    const RegionKind at = region_[static_cast<std::size_t>(id)];
    Node node = graph_.node(id);
    ValueIds inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(readable(node.inputs[i], id, static_cast<int>(i), at).id());
    for (Result& result : node.results) result = local(result);
    localise(node);
    node.like = node.remat_of = -1;
    node.cotangent.reset();  // placements have been decided
    const std::vector<Value> values = builder(at).copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      known_[{id, static_cast<std::int32_t>(i)}][index(at)] = values[i];
    }
  }

  /// Attributes that name sizes of result 0 name those of the shard.
  static void localise(Node& node) {
    const Shape& shape = node.results[0].type.shape;
    for (std::size_t i = 0; i < node.op->attrs.size(); ++i) {
      const AttrDef& attr = node.op->attrs[i];
      if (attr.name == "shape") node.attrs = node.attrs.with(i, ints(shape));
      if (attr.size_of_dim != AttrDef::kNoDim) {
        const int dim = attr.size_of_dim < 0 ? attr.size_of_dim + shape.ndim() : attr.size_of_dim;
        node.attrs = node.attrs.with(i, shape[dim]);
      }
    }
  }

  /// An operand as a node may read it: beyond the logical extent of what it reduces lies the
  /// identity of the reduction.
  Value readable(ValueId v, NodeId reader, int operand, RegionKind at) {
    const Value value = import(v, at);
    const std::vector<std::int64_t> padded =
        padded_dims(builder(at).so_far().result(value.id()), graph_.mesh());
    if (padded.empty()) return value;
    const Node& node = graph_.node(reader);
    const std::optional<Monoid> need =
        reduction_of_padding(*node.op, graph_.factors(reader), operand, padded);
    return need ? cleared(v, *need, at, node) : value;
  }

  /// The value with the identity of a reduction in all its padding. The first reduction that asks
  /// has it cleared for all who read the value from then on, so that nothing needs to be copied.
  Value cleared(ValueId v, Monoid monoid, RegionKind at, const Node& reader) {
    if (padding_of(v, at) == monoid) return import(v, at);
    auto& known = cleared_[index(at)];
    if (const auto found = known.find({v, monoid}); found != known.end()) return found->second;
    const Node& node = graph_.node(v.node);
    const bool for_all = !node.op->traits.leaf && !padding_of(v, at);
    const bool at_home = for_all && !accumulates(graph_.result(v)) && home(v) != at;
    const RegionKind where = at_home ? home(v) : at;
    const Value out = clear_padding(where, import(v, where), monoid, at_home ? node : reader);
    if (!for_all) {
      known.emplace(std::pair(v, monoid), out);
      return out;
    }
    known_[v][index(where)] = out;
    padding_[v][index(where)] = monoid;
    return import(v, at);
  }

  /// What lies in a value's padding. States are stored with zeros there.
  std::optional<Monoid> padding_of(ValueId v, RegionKind at) const {
    if (graph_.node(v.node).op == &kState) return Monoid::Sum;
    const auto& padding = padding_[v];
    return padding[index(at)] ? padding[index(at)] : padding[index(home(v))];
  }

  Value clear_padding(RegionKind at, Value value, Monoid monoid, const Node& marks) {
    const Result result = builder(at).so_far().result(value.id());
    Node node;
    node.op = &kClearPadding;
    node.attrs = {padded_dims(result, graph_.mesh()), std::string(to_text(monoid))};
    node.block = marks.block;
    node.phase = marks.phase;
    node.stage = marks.stage;
    node.where = marks.where;
    node.results = {result};
    return builder(at).copy(std::move(node), {value.id()})[0];
  }

  const Graph& graph_;
  MoveStyle style_;
  std::vector<RegionKind> region_;
  std::array<std::unique_ptr<Builder>, kRegions.size()> builders_;
  ValueTable<std::array<Value, kRegions.size()>> known_;  // by region
  ValueTable<std::array<std::optional<Monoid>, kRegions.size()>>
      padding_;  // what it was cleared to, by region
  std::array<std::map<std::pair<ValueId, Monoid>, Value>, kRegions.size()>
      cleared_;  // otherwise, or of leaves
  Redistributor redistributor_;
  std::array<std::map<ValueId, Value>, kRegions.size()> copies_;  // of states that leave
  std::set<ValueId> handed_;  // values that a later region reads
  std::vector<std::int32_t> place_in_block_;
  std::unordered_map<NodeId, const State*> states_;
  std::unordered_map<std::string, ValueId> state_named_;
};

}  // namespace

Program partition(const Graph& placed, const Machine& machine, MoveStyle style) {
  return Partitioner(placed, machine, style).run();
}

}  // namespace tessera
