#include "tessera/passes/partition.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ir/value_table.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/moves.h"
#include "tessera/passes/rewrite.h"
#include "tessera/passes/stage_partition.h"
#include "tessera/passes/stage_regions.h"

namespace tessera {

namespace {

std::vector<std::int64_t> ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

class Partitioner {
 public:
  Partitioner(const Graph& graph, Redistributor& redistributor, const Pipeline& pipeline,
              const NodeRegions& regions, int stage)
      : graph_(graph),
        late_outputs_(graph.mesh().has(kMicrobatchAxis) || pipeline.chunks() > 1),
        to_(graph, pipeline, regions, stage),
        padding_(at(to_.count()), ValueTable<std::optional<Monoid>>(graph)),
        cleared_(at(to_.count())),
        copies_(at(to_.count())),
        redistributor_(redistributor) {
    for (const State& state : graph.states()) state_named_[state.path] = state.value;
  }

  Program run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).op->traits.leaf && to_.computes(id)) place(id);
    }
    for (const Output& output : graph_.outputs()) leave(output);
    return to_.finish();
  }

 private:
  Builder& builder(int region) { return to_.builder(region); }

  void leave(const Output& output) {
    const bool next = output.kind == Output::Kind::Next;
    if (next && to_.arrives(state_named_.at(output.name))) return;
    const int region = next || late_outputs_ ? to_.update() : to_.home(output.value, to_.update());
    if (next) to_.import(state_named_.at(output.name), region);  // listed where it is written
    builder(region).output(output.kind, output.name, leaving(output, region));
  }

  /// The value of an output. A state's old value is copied, because the state may be overwritten
  /// before the output is read.
  Value leaving(const Output& output, int region) {
    const Node& node = graph_.node(output.value.node);
    const Sharding& sharding = graph_.result(output.value).placement->sharding;
    require(sharding.dim_of(kMicrobatchAxis) < 0, "output '", output.name,
            "' cannot be cut into micro-batches: it holds rows of the batch, but only sums over ",
            "them leave the step; reduce it, or run one micro-batch\n    ",
            describing(graph_, output.value.node));
    const Value value = to_.import(output.value, region);
    const bool next = output.kind == Output::Kind::Next;
    if (node.op != &kState) {
      const bool padded =
          !padded_dims(builder(region).so_far().result(value.id()), graph_.mesh()).empty();
      return next && padded ? cleared(output.value, Monoid::Sum, region, node) : value;
    }
    if (next && state_named_.at(output.name) == output.value) return value;
    auto& copies = copies_[at(region)];
    if (const auto found = copies.find(output.value); found != copies.end()) return found->second;
    Node copy = builder(region).node(value);
    copy.op = &kIdentity;
    copy.attrs = {};
    copy.name = {};
    const Value out = builder(region).copy(std::move(copy), {value.id()})[0];
    copies.emplace(output.value, out);
    return out;
  }

  void place(NodeId id) {
    if (reshards(*graph_.node(id).op)) {
      move(id);
    } else {
      compute(id);
    }
  }

  /// From where the value lies inside its region: what micro-batches summed is whole in time. Moves
  /// are made on the device, where one end is there.
  void move(NodeId id) {
    const Node& node = graph_.node(id);
    const int region = to_.region_of(id);
    const Memory memory = node.results[0].placement->memory;
    Value value = to_.import(node.inputs[0], region);
    if (memory == Memory::Device) value = add_copy(builder(region), value, memory, node);
    const Result from = builder(region).so_far().result(value.id());
    const Sharding to = to_.in_region(node.results[0].placement->sharding, region);
    const Redistribution& plan =
        redistributor_.plan(from.logical, from.type.dtype, from.placement->sharding, to);
    value = add_moves(builder(region), value, plan, to, node);
    to_.known({id, 0}, region) = add_copy(builder(region), value, memory, node);
  }

  void compute(NodeId id) {
    const int region = to_.region_of(id);
    Node node = graph_.node(id);
    ValueIds inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(readable(node.inputs[i], id, static_cast<int>(i), region).id());
    for (Result& result : node.results) result = to_.local(result, region);
    localise(node);
    node.like = node.remat_of = -1;
    node.cotangent.reset();  // placements have been decided
    const std::vector<Value> values = builder(region).copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      to_.known({id, static_cast<std::int32_t>(i)}, region) = values[i];
    }
  }

  /// Attributes that name sizes of result 0 name those of the shard.
  static void localise(Node& node) {
    const Shape& shape = node.results[0].type.shape;
    for (std::size_t i = 0; i < node.op->attrs.size(); ++i) {
      const AttrDef& attr = node.op->attrs[i];
      int dim = attr.size_of_dim;
      if (dim == AttrDef::kEveryDim) node.attrs = node.attrs.with(i, ints(shape));
      if (dim == AttrDef::kNoDim || dim == AttrDef::kEveryDim) continue;
      if (dim == AttrDef::kNamedDim) {
        const auto named = static_cast<std::size_t>(node.op->attrs.find("dim"));
        dim = static_cast<int>(std::get<std::int64_t>(node.attrs[named]));
      }
      node.attrs = node.attrs.with(i, shape[dim < 0 ? dim + shape.ndim() : dim]);
    }
  }

  /// An operand as a node may read it: beyond the logical extent of what it reduces lies the
  /// identity of the reduction.
  Value readable(ValueId v, NodeId reader, int operand, int region) {
    const Value value = to_.import(v, region);
    const std::vector<std::int64_t> padded =
        padded_dims(builder(region).so_far().result(value.id()), graph_.mesh());
    if (padded.empty()) return value;
    const Node& node = graph_.node(reader);
    const std::optional<Monoid> need =
        reduction_of_padding(*node.op, graph_.factors(reader), operand, padded);
    return need ? cleared(v, *need, region, node) : value;
  }

  /// The value with the identity of a reduction in all its padding. The first reduction that asks
  /// has it cleared for all who read the value from then on, so that nothing needs to be copied.
  Value cleared(ValueId v, Monoid monoid, int region, const Node& reader) {
    if (padding_of(v, region) == monoid) return to_.import(v, region);
    auto& known_so = cleared_[at(region)];
    if (const auto found = known_so.find({v, monoid}); found != known_so.end())
      return found->second;
    const Node& node = graph_.node(v.node);
    const int from = node.op->traits.leaf ? region : to_.home(v, region);
    const bool for_all = !node.op->traits.leaf && !padding_of(v, region);
    const bool at_home = for_all && !accumulates(graph_.result(v)) && from != region;
    const int where = at_home ? from : region;
    const Value out = clear_padding(where, to_.import(v, where), monoid, at_home ? node : reader);
    if (!for_all) {
      known_so.emplace(std::pair(v, monoid), out);
      return out;
    }
    to_.known(v, where) = out;
    padding_[at(where)][v] = monoid;
    return to_.import(v, region);
  }

  /// The monoid whose identity fills a value's padding. States have zeros there, in either memory.
  std::optional<Monoid> padding_of(ValueId v, int region) const {
    const Node& node = graph_.node(v.node);
    if (node.op == &kState || is_copied_state(node)) return Monoid::Sum;
    const std::optional<Monoid>& here = padding_[at(region)][v];
    return here || node.op->traits.leaf ? here : padding_[at(to_.home(v, region))][v];
  }

  bool is_copied_state(const Node& node) const {
    if (!reshards(*node.op) || graph_.node(node.inputs[0].node).op != &kState) return false;
    return node.results[0].placement->sharding == graph_.result(node.inputs[0]).placement->sharding;
  }

  Value clear_padding(int region, Value value, Monoid monoid, const Node& marks) {
    const Result result = builder(region).so_far().result(value.id());
    Node node =
        marked_like(marks, kClearPadding,
                    {padded_dims(result, graph_.mesh()), std::string(to_text(monoid))}, {result});
    return builder(region).copy(std::move(node), {value.id()})[0];
  }

  const Graph& graph_;
  bool late_outputs_;  // what leaves the step leaves it after the last micro-batch
  StageRegions to_;
  std::vector<ValueTable<std::optional<Monoid>>> padding_;  // what it was cleared to, by region
  std::vector<std::map<std::pair<ValueId, Monoid>, Value>> cleared_;  // otherwise, or of leaves
  std::vector<std::map<ValueId, Value>> copies_;                      // of states that leave
  Redistributor& redistributor_;
  std::unordered_map<std::string, ValueId> state_named_;
};

}  // namespace

Program partition(const Graph& placed, const Machine& machine) {
  const Pipeline one(make_schedule(kUsualSchedule, {1, 1, placed.mesh().size(kMicrobatchAxis)}));
  return partition(placed, one, 0, machine);
}

Program partition(const Graph& placed, const Pipeline& pipeline, int stage,
                  const Machine& machine) {
  return StagePartition(placed, pipeline, machine).stage(stage);
}

StagePartition::StagePartition(const Graph& placed, const Pipeline& pipeline,
                               const Machine& machine)
    : placed_(placed),
      pipeline_(pipeline),
      regions_(placed, pipeline),
      redistributor_(placed.mesh(), machine) {}

Program StagePartition::stage(int stage) {
  return Partitioner(placed_, redistributor_, pipeline_, regions_, stage).run();
}

}  // namespace tessera
