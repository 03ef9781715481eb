#include "tessera/passes/partition.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "tessera/base/index.h"
#include "tessera/ir/blocks.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ir/value_table.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/moves.h"
#include "tessera/passes/node_regions.h"

namespace tessera {

namespace {

std::vector<std::int64_t> ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// A slot that a region fills and others read.
struct Handed {
  ValueId value;
  int region = 0;
  friend auto operator<=>(const Handed&, const Handed&) = default;
};

/// What a region sends to another stage.
struct Sent {
  ValueId value;
  int region = 0;
  std::string name;
};

class Partitioner {
 public:
  Partitioner(const Graph& graph, const Machine& machine, MoveStyle style, const Pipeline& pipeline,
              int stage)
      : graph_(graph),
        style_(style),
        pipeline_(pipeline),
        stage_(stage),
        of_(graph, pipeline),
        redistributor_(graph.mesh(), machine) {
    make_regions();
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
    list_messages();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).op->traits.leaf && of_.computed_on(stage_, id)) place(id);
    }
    for (const Output& output : graph_.outputs()) leave(output);
    list_unread();
    send();
    for (const auto& [v, at_region] : handed_) {
      const bool sums = accumulates(graph_.result(v)) && !arrives(v);
      builder(at_region).output(sums ? Output::Kind::Accumulate : Output::Kind::Slot,
                                slot_name(v, at_region), known(v, at_region));
    }
    for (std::size_t r = 0; r < program_.regions.size(); ++r)
      program_.regions[r].graph = builders_[r]->finish();
    program_.actions = whole_step(pipeline_.schedule().stages[at(stage_)]);
    return std::move(program_);
  }

 private:
  /// Begin, the chunks of this stage, Update.
  void make_regions() {
    const auto add = [&](RegionKind kind, int chunk) {
      program_.regions.push_back({kind, chunk, {}});
      builders_.push_back(std::make_unique<Builder>(Form::Local, graph_.mesh()));
      known_.emplace_back(graph_);
      padding_.emplace_back(graph_);
    };
    std::vector<int> chunks;
    for (int c = 0; c < pipeline_.chunks(); ++c) {
      if (pipeline_.stage_of(c) == stage_) chunks.push_back(c);
    }
    first_chunk_ = chunks[0];
    add(RegionKind::Begin, 0);
    for (const int c : chunks) add(RegionKind::Forward, c);
    for (auto c = chunks.rbegin(); c != chunks.rend(); ++c) {
      add(RegionKind::Backward, *c);
      if (pipeline_.schedule().splits) add(RegionKind::Weights, *c);
    }
    add(RegionKind::Update, 0);
    cleared_.resize(program_.regions.size());
    copies_.resize(program_.regions.size());
  }

  Builder& builder(int region) { return *builders_[at(region)]; }
  Value& known(ValueId v, int region) { return known_[at(region)][v]; }
  int update() const { return static_cast<int>(program_.regions.size()) - 1; }
  int index_of(RegionKind kind, int chunk) const {
    return program_.index_of(kind, !in_loop(kind) ? 0 : chunk < 0 ? first_chunk_ : chunk);
  }

  /// Does another stage compute it?
  bool arrives(ValueId v) const {
    const int chunk = of_.chunk(v.node);
    return chunk >= 0 && pipeline_.stage_of(chunk) != stage_;
  }

  /// The region that has the value first: that computes it, or, for who reads it in region `to`,
  /// that receives it.
  int home(ValueId v, int to) const {
    const RegionKind kind =
        graph_.node(v.node).op == &kState ? RegionKind::Begin : of_.kind(v.node);
    if (!arrives(v)) return index_of(kind, of_.chunk(v.node));
    const Region& reader = program_.regions[at(to)];
    if (!in_loop(reader.kind)) return to;
    return index_of(kind, reader.chunk);
  }
  int region_of(NodeId id) const { return index_of(of_.kind(id), of_.chunk(id)); }
  /// Sums over micro-batches are whole in Update.
  Sharding in_region(const Sharding& sharding, int region) const {
    return region == update() ? sharding.without(kMicrobatchAxis) : sharding;
  }

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
      const auto knows = [&](const auto& region) { return region[{id, 0}].valid(); };
      if ((node.op == &kState || node.op == &kBatch) && !arrives({id, 0}) &&
          std::ranges::none_of(known_, knows))
        import({id, 0}, update());
    }
  }

  void leave(const Output& output) {
    const bool next = output.kind == Output::Kind::Next;
    if (next && arrives(state_named_.at(output.name))) return;
    // What leaves the step leaves it after the last micro-batch.
    const bool last = next || graph_.mesh().has(kMicrobatchAxis) || pipeline_.chunks() > 1;
    const int at_region = last ? update() : home(output.value, update());
    if (next) import(state_named_.at(output.name), at_region);  // listed where it is written
    builder(at_region).output(output.kind, output.name, leaving(output, at_region));
  }

  /// The messages of this stage. What a region sends and does not compute is there from its begin:
  /// the stage that waits for it may be one for which this stage waits later.
  void list_messages() {
    for (const Message& message : of_.messages()) {
      const bool loop = in_loop(message.region);
      const int from = loop ? pipeline_.stage_of(message.giver) : message.giver;
      const int to = loop ? pipeline_.stage_of(message.taker) : message.taker;
      if (from != stage_ && to != stage_) continue;
      const std::string name = message_name(message.value, message.region, message.taker);
      program_.messages.push_back({name, from, to});
      if (from != stage_) continue;
      const int region = index_of(message.region, loop ? message.giver : 0);
      sent_.push_back({message.value, region, name});
      if (home(message.value, region) != region || graph_.node(message.value.node).op->traits.leaf)
        import(message.value, region);
    }
  }

  void send() {
    for (const Sent& sent : sent_)
      builder(sent.region).output(Output::Kind::Send, sent.name, import(sent.value, sent.region));
  }

  void mark_like(int region, NodeId id) {
    const Node& node = graph_.node(id);
    builder(region).set_mark({node.block, node.phase, node.stage, node.where});
  }

  /// The value inside region `to`: computed there, an input of it, a slot that an earlier region
  /// fills, or received from another stage.
  Value import(ValueId v, int to) {
    if (const Value value = known(v, to); value.valid()) return value;
    const Node& node = graph_.node(v.node);
    Result result = local(graph_.result(v));
    mark_like(to, v.node);
    Value value;
    if (node.op->traits.leaf && !arrives(v)) {
      Node leaf = node;
      leaf.results[0] = result;
      leaf.cotangent.reset();
      const int shape = leaf.op->attrs.find("shape");
      if (shape >= 0) {
        leaf.attrs = leaf.attrs.with(static_cast<std::size_t>(shape), ints(result.type.shape));
      }
      value = builder(to).copy(std::move(leaf), {})[0];
      if (node.op == &kState) add_state(to, v.node, value);
    } else if (const int from = home(v, to); from != to) {
      if (arrives(v)) import(v, from);
      value = builder(to).slot(slot_name(v, from), hand_over(v, from, std::move(result)));
    } else {
      const Region& region = program_.regions[at(to)];
      lie(result, in_region(result.placement->sharding, to));
      value = builder(to).receive(
          message_name(v, region.kind, in_loop(region.kind) ? region.chunk : stage_),
          std::move(result));
    }
    known(v, to) = value;
    return value;
  }

  /// The value of an output. A state's old value is copied, because the state may be overwritten
  /// before the output is read.
  Value leaving(const Output& output, int region) {
    const Node& node = graph_.node(output.value.node);
    const Sharding& sharding = graph_.result(output.value).placement->sharding;
    require(node.op == &kBatch || sharding.dim_of(kMicrobatchAxis) < 0, "output '", output.name,
            "' cannot be cut into micro-batches: it holds rows of the batch, but only sums over ",
            "them leave the step; reduce it, or run one micro-batch\n    ",
            describing(graph_, output.value.node));
    const Value value = import(output.value, region);
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

  /// Named by the place in its block, so that blocks of one class stay alike.
  std::string value_name(ValueId v) const {
    const std::string_view block = block_of(graph_.node(v.node).block);
    const std::int32_t place = place_in_block_[at(v.node)];
    return text(block, block.empty() ? "" : ".", "v", place, v.index == 0 ? "" : "_",
                v.index == 0 ? "" : text(v.index));
  }

  /// "layers.0.v12>1": what chunk 1 receives in the loop; "v3 begin>2": what stage 2 does before
  /// it.
  std::string message_name(ValueId v, RegionKind region, int taker) const {
    return text(value_name(v), in_loop(region) ? "" : " ", in_loop(region) ? "" : to_text(region),
                ">", taker);
  }

  std::string slot_name(ValueId v, int from) const {
    const Region& region = program_.regions[at(from)];
    if (arrives(v))
      return message_name(v, region.kind, in_loop(region.kind) ? region.chunk : stage_);
    return value_name(v);
  }

  /// Region `from` will put it out; an accumulator is complete, so no longer partial, where it is
  /// read.
  Result hand_over(ValueId v, int from, Result result) {
    handed_.insert({v, from});
    if (accumulates(result)) lie(result, result.placement->sharding.without(kMicrobatchAxis));
    return result;
  }

  void add_state(int region, NodeId id, Value value) {
    const auto found = states_.find(id);
    check(found != states_.end(), "a state node is not listed: ", describing(graph_, id));
    State state = *found->second;
    state.value = value.id();
    builder(region).add_state(std::move(state));
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
    const int region = region_of(id);
    const Value value = import(node.inputs[0], region);
    const Result from = builder(region).so_far().result(value.id());
    const Sharding to = in_region(node.results[0].placement->sharding, region);
    const std::optional<Redistribution> dim_by_dim = plan_dim_by_dim(
        style_, graph_.mesh(), from.logical, from.type.dtype, from.placement->sharding, to);
    const Redistribution& plan = dim_by_dim ? *dim_by_dim
                                            : redistributor_.plan(from.logical, from.type.dtype,
                                                                  from.placement->sharding, to);
    known({id, 0}, region) = add_moves(builder(region), value, plan, to, node);
  }

  void compute(NodeId id) {
    const int region = region_of(id);
    Node node = graph_.node(id);
    ValueIds inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(readable(node.inputs[i], id, static_cast<int>(i), region).id());
    for (Result& result : node.results) {
      result = local(result);
      lie(result, in_region(result.placement->sharding, region));
    }
    localise(node);
    node.like = node.remat_of = -1;
    node.cotangent.reset();  // placements have been decided
    const std::vector<Value> values = builder(region).copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      known({id, static_cast<std::int32_t>(i)}, region) = values[i];
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
  Value readable(ValueId v, NodeId reader, int operand, int region) {
    const Value value = import(v, region);
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
    if (padding_of(v, region) == monoid) return import(v, region);
    auto& known_so = cleared_[at(region)];
    if (const auto found = known_so.find({v, monoid}); found != known_so.end())
      return found->second;
    const Node& node = graph_.node(v.node);
    const int from = node.op->traits.leaf ? region : home(v, region);
    const bool for_all = !node.op->traits.leaf && !padding_of(v, region);
    const bool at_home = for_all && !accumulates(graph_.result(v)) && from != region;
    const int where = at_home ? from : region;
    const Value out = clear_padding(where, import(v, where), monoid, at_home ? node : reader);
    if (!for_all) {
      known_so.emplace(std::pair(v, monoid), out);
      return out;
    }
    known(v, where) = out;
    padding_[at(where)][v] = monoid;
    return import(v, region);
  }

  /// What lies in a value's padding. States are stored with zeros there.
  std::optional<Monoid> padding_of(ValueId v, int region) const {
    const Node& node = graph_.node(v.node);
    if (node.op == &kState) return Monoid::Sum;
    const std::optional<Monoid>& here = padding_[at(region)][v];
    return here || node.op->traits.leaf ? here : padding_[at(home(v, region))][v];
  }

  Value clear_padding(int region, Value value, Monoid monoid, const Node& marks) {
    const Result result = builder(region).so_far().result(value.id());
    Node node;
    node.op = &kClearPadding;
    node.attrs = {padded_dims(result, graph_.mesh()), std::string(to_text(monoid))};
    node.block = marks.block;
    node.phase = marks.phase;
    node.stage = marks.stage;
    node.where = marks.where;
    node.results = {result};
    return builder(region).copy(std::move(node), {value.id()})[0];
  }

  const Graph& graph_;
  MoveStyle style_;
  const Pipeline& pipeline_;
  int stage_;
  int first_chunk_ = 0;
  NodeRegions of_;
  Program program_;
  std::vector<std::unique_ptr<Builder>> builders_;  // by region, as what follows
  std::vector<ValueTable<Value>> known_;
  std::vector<ValueTable<std::optional<Monoid>>> padding_;            // what it was cleared to
  std::vector<std::map<std::pair<ValueId, Monoid>, Value>> cleared_;  // otherwise, or of leaves
  std::vector<std::map<ValueId, Value>> copies_;                      // of states that leave
  Redistributor redistributor_;
  std::set<Handed> handed_;  // values that a later region reads
  std::vector<Sent> sent_;
  std::vector<std::int32_t> place_in_block_;
  std::unordered_map<NodeId, const State*> states_;
  std::unordered_map<std::string, ValueId> state_named_;
};

}  // namespace

Program partition(const Graph& placed, const Machine& machine, MoveStyle style) {
  const Pipeline one(make_schedule("1f1b", {1, 1, placed.mesh().size(kMicrobatchAxis)}));
  return partition(placed, one, 0, machine, style);
}

Program partition(const Graph& placed, const Pipeline& pipeline, int stage, const Machine& machine,
                  MoveStyle style) {
  return Partitioner(placed, machine, style, pipeline, stage).run();
}

}  // namespace tessera
