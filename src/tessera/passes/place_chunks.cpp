#include "tessera/passes/place_chunks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tessera/base/index.h"
#include "tessera/ir/blocks.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// Per node: does it depend on a parameter, or is it one?
std::vector<bool> dependent(const Graph& graph) {
  std::vector<bool> out(graph.nodes().size(), false);
  for (const State& state : graph.states()) {
    const bool alone = state.role == Role::Counter || is_setting(state.role);
    if (!alone) out[at(state.value.node)] = true;
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const ValueId input : graph.node(id).inputs) {
      if (out[at(input.node)]) out[at(id)] = true;
    }
  }
  return out;
}

struct Unit {
  std::string path;
  double flops = 0;
  int pinned = -1;
};

std::vector<Unit> units_of(const Graph& graph, const PipelineStrategy& pipeline) {
  const std::vector<bool> depends = dependent(graph);
  std::vector<Unit> out;
  std::map<std::string_view, std::size_t> known;
  for (const bool backward : {false, true}) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.phase != (backward ? Phase::Backward : Phase::Forward) || !depends[at(id)] ||
          node.op->traits.leaf)
        continue;
      const std::string_view path = unit_of(node.block);
      const auto [found, fresh] = known.emplace(path, out.size());
      if (fresh) out.push_back({std::string(path)});
      Unit& unit = out[found->second];
      if (node.op->flops != nullptr) unit.flops += node.op->flops(graph.call(id));
      if (node.stage < 0) continue;
      require(unit.pinned < 0 || unit.pinned == node.stage, "block '", path, "' is in the chunks ",
              unit.pinned, " and ", node.stage, "; put all of it in one\n    ",
              describing(graph, id));
      unit.pinned = node.stage;
    }
  }
  for (Unit& unit : out) {
    for (const ChunkPin& pin : pipeline.pins) {
      if (matches(pin.blocks, unit.path)) unit.pinned = pin.chunk;
    }
  }
  return out;
}

/// Adds units of another program, each behind that which it comes behind there; the first before
/// that which it comes before.
void add_units(std::vector<Unit>& all, const std::vector<Unit>& more) {
  const auto find = [&](const Unit& unit) {
    return std::ranges::find(all, unit.path, &Unit::path) - all.begin();
  };
  const auto known = [&](const Unit& unit) { return find(unit) < std::ssize(all); };
  const auto first = std::ranges::find_if(more, known);
  std::ptrdiff_t to = first == more.end() ? std::ssize(all) : find(*first);
  for (const Unit& unit : more) {
    if (known(unit)) {
      to = find(unit) + 1;
    } else if (!unit.path.empty()) {  // what is outside of blocks follows its operands
      all.insert(all.begin() + to++, unit);
    }
  }
}

/// The best way to fill the first chunks with the first units: the most that one of them has, then
/// the sum of squares, which prefers even ones.
struct Cut {
  double most = std::numeric_limits<double>::infinity(), squares = most;
  std::size_t begin = 0;  // of the last chunk
  friend bool operator<(const Cut& a, const Cut& b) {
    return std::pair(a.most, a.squares) < std::pair(b.most, b.squares);
  }
};

/// The first unit of every chunk.
std::vector<std::size_t> best_cut(const std::vector<Unit>& units, int chunks) {
  const std::size_t n = units.size();
  std::vector<std::vector<Cut>> best(at(chunks + 1), std::vector<Cut>(n + 1));  // [chunks][units]
  best[0][0].most = best[0][0].squares = 0;
  for (int c = 0; c < chunks; ++c) {
    for (std::size_t end = at(c + 1); end <= n; ++end) {
      double flops = 0;
      for (std::size_t begin = end; begin-- > at(c);) {
        if (units[begin].pinned >= 0 && units[begin].pinned != c) break;
        flops += units[begin].flops;
        const Cut& before = best[at(c)][begin];
        const Cut cut{std::max(before.most, flops), before.squares + flops * flops, begin};
        if (cut < best[at(c + 1)][end]) best[at(c + 1)][end] = cut;
      }
    }
  }
  const double most = best[at(chunks)][n].most;
  if (most == std::numeric_limits<double>::infinity()) return {};
  std::vector<std::size_t> out(at(chunks));
  for (std::size_t c = at(chunks), end = n; c-- > 0; end = out[c]) out[c] = best[c + 1][end].begin;
  return out;
}

std::string pinned_text(const std::vector<Unit>& units) {
  std::vector<std::string> out;
  for (const Unit& unit : units) {
    if (unit.pinned >= 0) out.push_back(text(unit.path, " on ", unit.pinned));
  }
  return join(out);
}

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<ChunkPin>& pins)
      : rewrite_(graph), pins_(pins), depends_(dependent(graph)) {}

  Graph run() {
    const Graph& from = rewrite_.from();
    if (pins_.empty()) return without_stages();
    for (NodeId id = 0; id < from.size(); ++id) {
      const Node& node = from.node(id);
      const int chunk = depends_[at(id)] ? chunk_for(id) : -1;
      if (chunk >= 0) {
        place(id, chunk);
      } else if (node.op->traits.leaf || node.phase == Phase::Update) {
        everywhere(id);
      }
      // All else is computed where it is read.
    }
    for (const Output& output : from.outputs()) rewrite_.map(output.value, read(output.value, -1));
    return rewrite_.finish();
  }

 private:
  Graph without_stages() {
    for (NodeId id = 0; id < rewrite_.from().size(); ++id) mark(rewrite_.copy(id), -1);
    return rewrite_.finish();
  }

  /// States carry their path, whatever block declares them.
  static std::string_view path_of(const Node& node) {
    return node.op == &kState ? std::string_view(std::get<std::string>(node.attrs[0]))
                              : std::string_view(node.block);
  }

  int chunk_of(std::string_view unit) const {
    int out = -1;
    for (const ChunkPin& pin : pins_) {
      if (matches(pin.blocks, unit)) out = pin.chunk;
    }
    return out;
  }

  int chunk_for(NodeId id) {
    const Node& node = rewrite_.from().node(id);
    const std::string_view unit = unit_of(path_of(node));
    const bool update = node.phase == Phase::Update;
    const int out = unit.empty() && update ? -1 : chunk_of(unit);
    if (update || node.op->traits.leaf || (out >= 0 && !unit.empty())) return out;
    const int operands = chunk_of_operands(node);
    if (out < 0 || operands < 0) return std::max(out, operands);
    return node.phase == Phase::Backward ? std::min(out, operands) : std::max(out, operands);
  }

  /// Outside of blocks: the first chunk that has all operands.
  int chunk_of_operands(const Node& node) {
    int last = -1, first_back = std::numeric_limits<int>::max();
    for (const ValueId input : node.inputs) {
      if (!rewrite_.has(input) || rewrite_.from().node(input.node).op->traits.leaf) continue;
      const int chunk = rewrite_.to().node(rewrite_(input)).stage;
      const bool back = rewrite_.from().node(input.node).phase == Phase::Backward;
      if (back && chunk >= 0) first_back = std::min(first_back, chunk);
      if (!back) last = std::max(last, chunk);
    }
    return node.phase == Phase::Backward && first_back != std::numeric_limits<int>::max()
               ? first_back
               : last;
  }

  void mark(const std::vector<Value>& values, int chunk) {
    if (!values.empty()) rewrite_.to().set_stage(values[0], chunk);
  }

  void place(NodeId id, int chunk) {
    const Node& node = rewrite_.from().node(id);
    ValueIds inputs;
    for (const ValueId input : node.inputs) {
      check_order(id, chunk, input);
      inputs.push_back(read(input, chunk).id());
    }
    mark(rewrite_.copy_on(id, std::move(inputs)), chunk);
  }

  /// Values come from earlier chunks in forward, and of their own phase from later ones in
  /// backward.
  void check_order(NodeId id, int chunk, ValueId input) {
    const Graph& from = rewrite_.from();
    const Node &reader = from.node(id), &giver = from.node(input.node);
    if (reader.phase == Phase::Update || giver.op->traits.leaf || !rewrite_.has(input)) return;
    const int given = rewrite_.to().node(rewrite_(input)).stage;
    const bool back = giver.phase == Phase::Backward;
    require(back ? given >= chunk || sums_of_steps(reader) : given <= chunk,
            "a pipeline cannot run ", reader.op->name, " in chunk ", chunk, ", which reads ",
            back ? "a gradient" : "a value", " of chunk ", given,
            back ? ", an earlier one" : ", a later one",
            "; put their blocks in another order\n    ", describing(from, id));
  }

  /// A term of a parameter's gradient, which is summed after the last micro-batch.
  bool sums_of_steps(const Node& reader) const {
    return reader.cotangent && rewrite_.from().node(reader.cotangent->of.node).op == &kState;
  }

  void everywhere(NodeId id) {
    const Node& node = rewrite_.from().node(id);
    ValueIds inputs;
    for (const ValueId input : node.inputs) inputs.push_back(read(input, -1).id());
    if (node.op == &kAddN) inputs = summed_by_chunk(id, std::move(inputs));
    mark(rewrite_.copy_on(id, std::move(inputs)), -1);
  }

  /// The sums of those operands that one chunk has, by chunk; and all others.
  ValueIds summed_by_chunk(NodeId id, ValueIds inputs) {
    std::map<int, ValueIds> by_chunk;
    for (const ValueId input : inputs)
      by_chunk[rewrite_.to().so_far().node(input.node).stage].push_back(input);
    if (by_chunk.size() < 2) return inputs;
    ValueIds out = std::move(by_chunk[-1]);
    by_chunk.erase(-1);
    for (auto& [chunk, operands] : by_chunk) {
      if (operands.size() == 1) {
        out.push_back(operands[0]);
        continue;
      }
      const std::vector<Value> sum =
          rewrite_.to().copy(rewrite_.from().node(id), std::move(operands));
      mark(sum, chunk);
      out.push_back(sum[0].id());
    }
    return out;
  }

  /// The value as `chunk` reads it: that of the node, or of a copy that `chunk` has of its own.
  Value read(ValueId v, int chunk) {
    if (rewrite_.has(v)) return rewrite_(v);
    auto& copies = copies_[chunk];
    const auto found = copies.find(v);
    if (found != copies.end()) return found->second;
    ValueIds inputs;
    for (const ValueId input : rewrite_.from().node(v.node).inputs)
      inputs.push_back(read(input, chunk).id());
    const std::vector<Value> values = rewrite_.copy_apart(v.node, std::move(inputs));
    mark(values, chunk);
    for (std::size_t i = 0; i < values.size(); ++i)
      copies.emplace(ValueId{v.node, static_cast<std::int32_t>(i)}, values[i]);
    return copies.at(v);
  }

  Rewrite rewrite_;
  const std::vector<ChunkPin>& pins_;
  std::vector<bool> depends_;
  std::map<int, std::map<ValueId, Value>> copies_;  // by chunk, of what depends on no parameter
};

}  // namespace

std::string_view unit_of(std::string_view path) {
  const std::string_view block = block_of(path);
  return block.empty() ? path.substr(0, path.find('.')) : block;
}

std::vector<ChunkPin> cut_into_chunks(const Graph& graph, const PipelineStrategy& pipeline) {
  const Graph* const alone = &graph;
  return cut_into_chunks(std::span(&alone, 1), pipeline);
}

std::vector<ChunkPin> cut_into_chunks(std::span<const Graph* const> programs,
                                      const PipelineStrategy& pipeline) {
  std::vector<Unit> units;
  for (const Graph* const program : programs) {
    if (units.empty()) {
      units = units_of(*program, pipeline);
    } else {
      add_units(units, units_of(*program, pipeline));
    }
  }
  const int chunks = pipeline.total();
  for (const Unit& unit : units) {
    require(unit.pinned < chunks, "block '", unit.path, "' is put into chunk ", unit.pinned,
            ", but there are chunks 0 to ", chunks - 1);
  }
  require(at(chunks) <= units.size(), "a pipeline of ", chunks, " chunks for a model of ",
          units.size(), " blocks; use at most as many chunks in total as blocks");
  const std::vector<std::size_t> begins = best_cut(units, chunks);
  require(!begins.empty(), "no cut into ", chunks, " chunks has one block or more in each, in the ",
          "order of the model, and ", pinned_text(units), "; pin fewer blocks to chunks");
  std::vector<ChunkPin> out;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto behind = std::upper_bound(begins.begin(), begins.end(), u);
    out.push_back({units[u].path, static_cast<int>(behind - begins.begin()) - 1});
  }
  return out;
}

Graph place_chunks(const Graph& graph, const std::vector<ChunkPin>& pins) {
  return Placer(graph, pins).run();
}

}  // namespace tessera
