#include "runtime/random_strategy.h"

#include <algorithm>
#include <vector>

#include "runtime/random_pool.h"
#include "tessera/passes/rewrite.h"

namespace tessera::fuzz {

namespace {

// Streams of one seed, beside those of the graph; nodes have their own from kNodes on.
enum StrategyStream : std::uint64_t {
  kMesh = 64,
  kBatchCuts,
  kZero,
  kManner,
  kTimeOrder,
  kNodes = 1024
};

constexpr std::int64_t kMaxRanks = 18;  // of simulated ones

using Names = std::vector<std::string>;

class Drawing {
 public:
  Drawing(std::uint64_t seed, const Graph& graph) : seed_(seed), graph_(graph) {}

  RandomStrategy draw() {
    mesh();
    batch();
    zero();
    manner();
    Rewrite all(graph_);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const std::vector<Value> values = all.copy(id);
      if (const State* state = state_of(id)) {
        pin_state(id, *state);
      } else if (!graph_.node(id).op->traits.leaf) {
        pin_value(all.to(), values[0], id);
      }
    }
    return {all.finish(), std::move(out_), false};
  }

 private:
  void mesh() {
    Random random(seed_, kMesh);
    std::vector<Axis> axes;
    std::int64_t ranks = 1;
    for (std::int64_t count = 1 + random.below(3), i = 0; i < count; ++i) {
      const std::int64_t size = random.one_of({2, 2, 2, 3, 4});
      if (ranks * size > kMaxRanks) break;
      ranks *= size;
      axes.push_back({std::string(1, static_cast<char>('a' + i)), size, Level::Core});
      axes_.push_back(axes.back().name);
    }
    if (random.chance(0.4)) {
      const std::int64_t size = random.chance(0.05) ? 4 : random.one_of({2, 3});  // 4 is refused
      axes.push_back({std::string(kMicrobatchAxis), size, Level::Time});
    }
    time_ = axes.back().level == Level::Time;
    out_.mesh = Mesh(std::move(axes));
    if (random.chance(0.5)) {  // another order in which axes meet on a dim
      for (std::size_t i = axes_.size(); i > 1; --i)
        std::swap(axes_[i - 1],
                  axes_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
      out_.major = axes_;
    }
    if (time_ && Random(seed_, kTimeOrder).chance(0.3)) {
      // Micro-batches are not always the innermost cut of a dim.
      if (out_.major.empty()) out_.major = axes_;
      const auto at =
          Random(seed_, kTimeOrder + 1).below(static_cast<std::int64_t>(axes_.size()) + 1);
      out_.major.emplace(out_.major.begin() + at, kMicrobatchAxis);
    }
  }

  void batch() {
    Random random(seed_, kBatchCuts);
    out_.batch.assign(4, {});
    for (const std::string& axis : axes_) {
      if (random.chance(0.6))
        out_.batch[static_cast<std::size_t>(random.chance(0.6) ? 0 : random.below(4))].push_back(
            axis);
    }
    if (!time_ || random.chance(0.05)) return;
    Names& rows = out_.batch[0];
    const auto time = std::find(out_.major.begin(), out_.major.end(), kMicrobatchAxis);
    const auto minor = std::find_first_of(rows.begin(), rows.end(), time, out_.major.end());
    rows.emplace(minor, kMicrobatchAxis);
  }

  void zero() {
    Random random(seed_, kZero);
    for (Names* names : {&out_.shard_moments, &out_.shard_gradients, &out_.shard_parameters}) {
      for (const std::string& axis : axes_) {
        if (random.chance(0.25)) names->push_back(axis);
      }
    }
  }

  /// How much is pinned. Values that few pins contradict let cuts travel far.
  void manner() {
    Random random(seed_, kManner);
    states_ = random.chance(0.3) ? 0 : random.between(0.2, 1);
    values_ = random.chance(0.4) ? 0 : random.between(0.02, 0.4);
  }

  Sharding sharding(Random& random, int ndim) const {
    Sharding out = Sharding::replicated(ndim);
    for (const std::string& axis : axes_) {
      if (ndim > 0 && random.chance(0.6))
        out = out.with(axis, static_cast<int>(random.below(ndim)));
      else if (random.chance(0.03))
        out = out.with_partial(axis, Monoid::Sum);
    }
    return out;
  }

  const State* state_of(NodeId id) const {
    for (const State& state : graph_.states()) {
      if (state.value.node == id) return &state;
    }
    return nullptr;
  }

  void pin_state(NodeId id, const State& state) {
    Random random(seed_, kNodes + static_cast<std::uint64_t>(id));
    if (state.role == Role::Moment || !random.chance(states_)) return;
    Sharding cut = sharding(random, graph_.type(state.value).ndim());
    cut.partial.clear();
    out_.pins.push_back({state.path, std::move(cut)});
  }

  void pin_value(Builder& builder, Value value, NodeId id) {
    Random random(seed_, kNodes + static_cast<std::uint64_t>(id));
    const Node& node = graph_.node(id);
    const double often = node.phase == Phase::Forward ? values_ : values_ / 4;
    if (!random.chance(often)) return;
    const std::string name = text("pinned", id);
    builder.set_name(value, name);
    Sharding cut = sharding(random, value.ndim());
    if (value.dtype() == DType::Bool) cut.partial.clear();  // there are no sums of bools
    out_.pins.push_back({node.block.empty() ? name : text(node.block, ".", name), std::move(cut)});
  }

  const std::uint64_t seed_;
  const Graph& graph_;
  Names axes_;  // of ranks, major first
  bool time_ = false;
  double states_ = 0, values_ = 0;  // how many are pinned
  Strategy out_;
};

}  // namespace

RandomStrategy random_strategy(std::uint64_t seed, const RandomGraph& graph) {
  RandomStrategy out = Drawing(seed, graph.graph).draw();
  out.mixes_rows = graph.mixes_rows;
  return out;
}

std::string describe(const Strategy& s) {
  std::vector<std::string> cuts, pins;
  for (const Names& names : s.batch) cuts.push_back(names.empty() ? "-" : join(names, "."));
  for (const Pin& pin : s.pins) pins.push_back(text(pin.values, " ", pin.sharding));
  return text("mesh ", s.mesh, ", major ", join(s.major), ", batch [", join(cuts), "], moments ",
              join(s.shard_moments), ", gradients ", join(s.shard_gradients), ", parameters ",
              join(s.shard_parameters), ", pins: ", join(pins, "; "));
}

}  // namespace tessera::fuzz
