#include "tessera/passes/stage_regions.h"

#include <algorithm>
#include <string_view>

#include "tessera/base/index.h"
#include "tessera/ir/blocks.h"

namespace tessera {

StageRegions::StageRegions(const Graph& placed, const Pipeline& pipeline,
                           const NodeRegions& regions, int stage)
    : graph_(placed), pipeline_(pipeline), stage_(stage), of_(regions) {
  make_regions();
  std::unordered_map<std::string_view, std::int32_t> sizes;
  for (NodeId id = 0; id < placed.size(); ++id) {
    const std::string_view block = block_of(placed.node(id).block);
    place_in_block_.push_back(block.empty() ? id : sizes[block]++);
  }
  for (const State& state : placed.states()) states_[state.value.node] = &state;
  list_messages();
}

void StageRegions::make_regions() {
  const auto add = [&](RegionKind kind, int chunk) {
    program_.regions.push_back({kind, chunk, {}});
    builders_.push_back(std::make_unique<Builder>(Form::Local, graph_.mesh()));
    known_.emplace_back(graph_);
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
}

int StageRegions::index_of(RegionKind kind, int chunk) const {
  return program_.index_of(kind, !in_loop(kind) ? 0 : chunk < 0 ? first_chunk_ : chunk);
}

bool StageRegions::arrives(ValueId v) const {
  const int chunk = of_.chunk(v.node);
  return chunk >= 0 && pipeline_.stage_of(chunk) != stage_;
}

int StageRegions::home(ValueId v, int to) const {
  const RegionKind kind = of_.kind(v.node);
  if (!arrives(v)) return index_of(kind, of_.chunk(v.node));
  const Region& reader = program_.regions[at(to)];
  return in_loop(reader.kind) ? index_of(kind, reader.chunk) : to;
}

/// A value that a region sends and does not compute is available from its begin: the stage that
/// waits for it may be one for which this stage waits later.
void StageRegions::list_messages() {
  for (const Message& message : of_.messages()) {
    const bool loop = in_loop(message.region);
    const int from = loop ? pipeline_.stage_of(message.giver) : message.giver;
    const int to = loop ? pipeline_.stage_of(message.taker) : message.taker;
    if (loop) count_bytes(message);
    if (from != stage_ && to != stage_) continue;
    const std::string name = message_name(message.value, message.region, message.taker);
    const Edge edge{message.region, message.giver, message.taker};
    program_.messages.push_back({name, from, to, loop ? pipeline_.ahead(edge) : 0});
    if (from != stage_) continue;
    const int region = index_of(message.region, loop ? message.giver : 0);
    sent_.push_back({message.value, region, name});
    if (home(message.value, region) != region || graph_.node(message.value.node).op->traits.leaf)
      import(message.value, region);
  }
}

/// Messages come in the order of edges.
void StageRegions::count_bytes(const Message& message) {
  const Edge edge{message.region, message.giver, message.taker};
  std::vector<EdgeBytes>& edges = program_.edges;
  if (edges.empty() || edges.back().edge != edge) edges.push_back({edge});
  edges.back().bytes += local(graph_.result(message.value)).type.bytes();
}

/// States and batch inputs that nothing reads are inputs all the same: the last region has them.
void StageRegions::list_unread() {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    const auto knows = [&](const auto& region) { return region[{id, 0}].valid(); };
    if ((node.op == &kState || node.op == &kBatch) && !arrives({id, 0}) &&
        std::ranges::none_of(known_, knows))
      import({id, 0}, update());
  }
}

Result StageRegions::local(const Result& placed) const {
  return {{placed.type.dtype,
           local_shape(placed.type.shape, placed.placement->sharding, graph_.mesh()),
           {}},
          placed.placement,
          placed.type.shape};
}

Result StageRegions::local(const Result& placed, int region) const {
  Result out = local(placed);
  lie(out, in_region(out.placement->sharding, region));
  return out;
}

/// Gives a local value another sharding, and so another shape.
void StageRegions::lie(Result& result, Sharding sharding) const {
  result.type.shape = local_shape(result.logical, sharding, graph_.mesh());
  result.placement = Placement{std::move(sharding), result.placement->memory};
}

Value StageRegions::import(ValueId v, int to) {
  if (const Value value = known(v, to); value.valid()) return value;
  const Node& node = graph_.node(v.node);
  builder(to).set_mark({node.block, node.phase, node.stage, node.where});
  Result result = local(graph_.result(v));
  Value value;
  if (node.op->traits.leaf && !arrives(v)) {
    value = import_leaf(v, to, std::move(result));
  } else if (const int from = home(v, to); from != to) {
    if (arrives(v)) import(v, from);
    value = builder(to).slot(slot_name(v, from), hand_over(v, from, std::move(result)));
  } else {
    value = builder(to).receive(slot_name(v, to), local(graph_.result(v), to));
  }
  known(v, to) = value;
  return value;
}

Value StageRegions::import_leaf(ValueId v, int to, Result result) {
  Node leaf = graph_.node(v.node);
  const Shape shape = result.type.shape;
  leaf.results[0] = std::move(result);
  leaf.cotangent.reset();
  const int attr = leaf.op->attrs.shape_of_result();
  if (attr >= 0) {
    leaf.attrs = leaf.attrs.with(static_cast<std::size_t>(attr),
                                 std::vector<std::int64_t>(shape.begin(), shape.end()));
  }
  const bool is_state = leaf.op == &kState;
  const Value value = builder(to).copy(std::move(leaf), {})[0];
  if (!is_state) return value;
  const auto found = states_.find(v.node);
  check(found != states_.end(), "a state node is not listed: ", describing(graph_, v.node));
  State state = *found->second;
  state.value = value.id();
  builder(to).add_state(std::move(state));
  return value;
}

/// Region `from` will put it out; an accumulator is complete, so no longer partial, where it is
/// read.
Result StageRegions::hand_over(ValueId v, int from, Result result) {
  handed_.insert({v, from});
  if (accumulates(result)) lie(result, result.placement->sharding.without(kMicrobatchAxis));
  return result;
}

/// Named by the place in its block, so that blocks of one class stay alike.
std::string StageRegions::value_name(ValueId v) const {
  const std::string_view block = block_of(graph_.node(v.node).block);
  return text(block, block.empty() ? "" : ".", "v", place_in_block_[at(v.node)],
              v.index == 0 ? "" : "_", v.index == 0 ? "" : text(v.index));
}

/// "layers.0.v12>1": what chunk 1 receives in the loop; "v3 begin>2": what stage 2 does before it.
std::string StageRegions::message_name(ValueId v, RegionKind region, int taker) const {
  return text(value_name(v), in_loop(region) ? "" : " ", in_loop(region) ? "" : to_text(region),
              ">", taker);
}

std::string StageRegions::slot_name(ValueId v, int from) const {
  const Region& region = program_.regions[at(from)];
  if (!arrives(v)) return value_name(v);
  return message_name(v, region.kind, in_loop(region.kind) ? region.chunk : stage_);
}

Program StageRegions::finish() {
  list_unread();
  for (const Sent& sent : sent_)
    builder(sent.region).output(Output::Kind::Send, sent.name, import(sent.value, sent.region));
  for (const auto& [v, region] : handed_) {
    const bool sums = accumulates(graph_.result(v));
    builder(region).output(sums ? Output::Kind::Accumulate : Output::Kind::Slot,
                           slot_name(v, region), known(v, region));
  }
  for (std::size_t r = 0; r < program_.regions.size(); ++r)
    program_.regions[r].graph = builders_[r]->finish();
  program_.actions = whole_step(pipeline_.schedule().stages[at(stage_)]);
  program_.rings = find_rings(program_);
  return std::move(program_);
}

}  // namespace tessera
