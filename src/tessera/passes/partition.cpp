#include "tessera/passes/partition.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "tessera/ir/blocks.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ir/value_table.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"

namespace tessera {

namespace {

constexpr std::size_t index(RegionKind kind) { return static_cast<std::size_t>(kind); }

std::vector<std::int64_t> ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

bool on_time(const Result& result) {
  return result.placement->sharding.dim_of(kMicrobatchAxis) >= 0 ||
         result.placement->sharding.is_partial(kMicrobatchAxis);
}

bool accumulates(const Result& result) {
  return result.placement->sharding.is_partial(kMicrobatchAxis);
}

std::vector<RegionKind> assign_regions(const Graph& graph) {
  const std::size_t size = graph.nodes().size();
  std::vector<RegionKind> out(size, RegionKind::Update);
  if (!graph.mesh().has(kMicrobatchAxis)) {
    for (std::size_t i = 0; i < size; ++i)
      out[i] = static_cast<RegionKind>(static_cast<int>(graph.nodes()[i].phase) + 1);
    return out;
  }
  std::vector<bool> time(size), before(size, false);
  for (std::size_t i = 0; i < size; ++i) {
    const Node& node = graph.nodes()[i];
    time[i] = !node.op->traits.leaf && std::any_of(node.results.begin(), node.results.end(),
                                                   [](const Result& r) { return on_time(r); });
  }
  for (std::size_t i = size; i-- > 0;) {
    if (!time[i] && !before[i]) continue;
    for (const ValueId input : graph.nodes()[i].inputs) {
      if (!time[static_cast<std::size_t>(input.node)])
        before[static_cast<std::size_t>(input.node)] = true;
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
  explicit Partitioner(const Graph& graph)
      : graph_(graph), region_(assign_regions(graph)), known_(graph) {
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

  std::vector<Region> run() {
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
    std::vector<Region> out;
    for (std::size_t i = 0; i < builders_.size(); ++i)
      out.push_back({static_cast<RegionKind>(i), builders_[i]->finish()});
    return out;
  }

 private:
  Builder& builder(RegionKind at) { return *builders_[index(at)]; }
  RegionKind home(ValueId v) const { return region_[static_cast<std::size_t>(v.node)]; }
  static bool is_time(RegionKind kind) {
    return kind == RegionKind::Forward || kind == RegionKind::Backward;
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
      // Batch inputs are stored whole on time.
      if (node.op == &kBatch) {
        lie(result, result.placement->sharding.without(kMicrobatchAxis));
      }
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
    const bool kept =
        output.kind == Output::Kind::Next && state_named_.at(output.name) == output.value;
    if (node.op != &kState || kept) return value;
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

  /// An operand as a time node needs it: rows of whole values that the axis shards in the node's
  /// rule.
  Value rows(Value whole, ValueId v, int dim, RegionKind at) {
    const auto key = std::make_pair(v, dim);
    auto& known = rows_[index(at)];
    if (const auto found = known.find(key); found != known.end()) return found->second;
    Result result = builder(at).so_far().result(whole.id());
    lie(result, result.placement->sharding.with(kMicrobatchAxis, dim));
    Node node = graph_.node(v.node);
    node.op = &kShard;
    node.attrs = {std::string(kMicrobatchAxis), std::int64_t{dim}, ints(result.type.shape)};
    node.results = {std::move(result)};
    node.name = {};
    node.cotangent.reset();
    node.like = node.remat_of = -1;
    const Value value = builder(at).copy(std::move(node), {whole.id()})[0];
    known.emplace(key, value);
    return value;
  }

  /// Per operand, the dim that the time axis shards in this node; -1 for none.
  std::vector<int> time_dims(NodeId id) const {
    const Node& node = graph_.node(id);
    std::vector<int> dims(node.inputs.size(), -1);
    const Factors rule = graph_.factors(id);
    int factor = -1;
    const auto find = [&](const Factors::Dims& of, const Result& result) {
      const int dim = result.placement->sharding.dim_of(kMicrobatchAxis);
      if (dim >= 0 && !of[static_cast<std::size_t>(dim)].empty())
        factor = of[static_cast<std::size_t>(dim)][0];
    };
    for (std::size_t r = 0; r < node.results.size() && factor < 0; ++r)
      find(rule.outs[r], node.results[r]);
    for (std::size_t i = 0; i < node.inputs.size() && factor < 0; ++i) {
      if (graph_.node(node.inputs[i].node).op != &kBatch)
        find(rule.ins[i], graph_.result(node.inputs[i]));
    }
    for (std::size_t i = 0; i < node.inputs.size() && factor < 0; ++i)
      find(rule.ins[i], graph_.result(node.inputs[i]));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      for (std::size_t d = 0; d < rule.ins[i].size(); ++d) {
        const std::vector<int>& fs = rule.ins[i][d];
        if (factor >= 0 && !fs.empty() && fs[0] == factor) dims[i] = static_cast<int>(d);
      }
    }
    return dims;
  }

  void place(NodeId id) {
    const RegionKind at = region_[static_cast<std::size_t>(id)];
    Node node = graph_.node(id);
    const bool time = graph_.mesh().has(kMicrobatchAxis) && is_time(at);
    const std::vector<int> dims = time ? time_dims(id) : std::vector<int>(node.inputs.size(), -1);
    ValueIds inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Value value = import(node.inputs[i], at);
      const bool whole =
          builder(at).so_far().result(value.id()).placement->sharding.dim_of(kMicrobatchAxis) < 0;
      if (dims[i] >= 0 && whole) value = rows(value, node.inputs[i], dims[i], at);
      inputs.push_back(value.id());
    }
    for (Result& result : node.results) result = local(result);
    const int shape = node.op->attrs.find("shape");  // by convention the shape of result 0
    if (shape >= 0) {
      node.attrs =
          node.attrs.with(static_cast<std::size_t>(shape), ints(node.results[0].type.shape));
    }
    const auto follow = [&](NodeId other) {
      return other < 0 ? -1 : known_[{other, 0}][index(at)].id().node;
    };
    node.like = follow(node.like);
    node.remat_of = follow(node.remat_of);
    node.cotangent.reset();  // placements have been decided
    const std::vector<Value> values = builder(at).copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      known_[{id, static_cast<std::int32_t>(i)}][index(at)] = values[i];
    }
  }

  const Graph& graph_;
  std::vector<RegionKind> region_;
  std::array<std::unique_ptr<Builder>, 4> builders_;
  ValueTable<std::array<Value, 4>> known_;  // by region
  std::array<std::map<std::pair<ValueId, int>, Value>, 4> rows_;
  std::array<std::map<ValueId, Value>, 4> copies_;  // of states that leave
  std::set<ValueId> handed_;                        // values that a later region reads
  std::vector<std::int32_t> place_in_block_;
  std::unordered_map<NodeId, const State*> states_;
  std::unordered_map<std::string, ValueId> state_named_;
};

}  // namespace

std::string_view to_text(RegionKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"begin", "forward", "backward", "update"};
  return kNames[index(kind)];
}

std::vector<Region> partition(const Graph& placed) { return Partitioner(placed).run(); }

}  // namespace tessera
