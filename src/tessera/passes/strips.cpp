#include "tessera/passes/strips.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ir/cut.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/defer.h"
#include "tessera/passes/strip_nodes.h"

namespace tessera {

namespace {

/// Writes a region anew: first what strips read, then the strips, then the rest.
class StripWriter {
 public:
  StripWriter(const Graph& graph, const StripNodes& nodes)
      : rewrite_(graph), nodes_(nodes), now_(graph), all_(graph) {}

  /// Strips of `step` of `size` elements of the dim.
  Graph run(std::int64_t size, std::int64_t step) {
    const auto copy_others = [&](bool before) {
      for (NodeId id = 0; id < from().size(); ++id) {
        if (!nodes_.has(id) && nodes_.is_before(id) == before) rewrite_.copy(id);
      }
    };
    copy_others(true);
    for (std::int64_t begin = 0; begin < size; begin += step) {
      slices_.clear();
      for (NodeId id = 0; id < from().size(); ++id) {
        if (nodes_.has(id)) compute(id, begin, std::min(step, size - begin));
      }
    }
    for (NodeId id = 0; id < from().size(); ++id) {
      if (nodes_.has(id)) join(id);
    }
    copy_others(false);
    return rewrite_.finish();
  }

 private:
  const Graph& from() const { return rewrite_.from(); }

  void compute(NodeId id, std::int64_t begin, std::int64_t n) {
    const CutDims& cut = nodes_.cut(id);
    Node node = from().node(id);
    ValueIds inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(operand(node.inputs[i], cut.ins[i], begin, n, node).id());
    const auto onto = static_cast<std::size_t>(node.op->onto);
    const bool adds =
        begin > 0 && node.op->onto >= 0 && inputs.size() == onto && cut.outs[0] == kUncut;
    if (adds) inputs.push_back(now_[{id, 0}].id());
    node.name = {};
    for (std::size_t i = 0; i < node.results.size(); ++i)
      node.results[i] = part_of(node.results[i], cut.outs[i], n);
    if (is_rounded(node, cut)) {
      node.attrs = node.attrs.with(node.attrs.size(), DType::F32);
      node.results[0].type.dtype = DType::F32;
    }
    const std::vector<Value> values = rewrite_.to().copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ValueId result{id, static_cast<std::int32_t>(i)};
      const bool sum = cut.outs[i] == kUncut && begin > 0 && !(adds && i == 0);
      now_[result] = sum ? added(now_[result], values[i]) : values[i];
      if (cut.outs[i] != kUncut) all_[result].push_back(values[i].id());
    }
  }

  /// The part of an operand that a strip reads.
  Value operand(ValueId v, int dim, std::int64_t begin, std::int64_t n, const Node& reader) {
    if (nodes_.has(v.node)) return now_[v];
    if (dim == kUncut) return rewrite_(v);
    Value& slice = slices_[{v, dim}];
    if (slice.valid()) return slice;
    const Result part = part_of(from().result(v), dim, n);
    return slice = add(kSlice, {std::int64_t{dim}, begin, n, std::int64_t{1}}, part,
                       {rewrite_(v).id()}, reader);
  }

  Value added(Value sum, Value term) {
    const Node& maker = rewrite_.to().node(term);
    return add(kAdd, {}, maker.results[at(term.id().index)], {sum.id(), term.id()}, maker);
  }

  /// Makes the values that are read outside: rows of all strips joined, and complete sums.
  void join(NodeId id) {
    const Node& node = from().node(id);
    for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
      const ValueId v{id, i};
      const int dim = nodes_.cut(id).outs[at(i)];
      if (!nodes_.is_read_outside(v)) continue;
      const Result& whole = from().result(v);
      if (dim != kUncut) {
        rewrite_.map(v, add(kConcat, {std::int64_t{dim}}, whole, std::move(all_[v]), node));
      } else if (now_[v].dtype() != whole.type.dtype) {
        rewrite_.map(v, add(kCast, {whole.type.dtype}, whole, {now_[v].id()}, node));
      } else {
        rewrite_.map(v, now_[v]);
      }
    }
  }

  /// A node with the marks of another.
  Value add(const OpDef& op, Attrs attrs, Result result, ValueIds inputs, const Node& like) {
    return rewrite_.to().copy(marked_like(like, op, std::move(attrs), {std::move(result)}),
                              std::move(inputs))[0];
  }

  /// Rows of a strip are of no shard: every rank has a strip of its own rows.
  static Result part_of(Result whole, int dim, std::int64_t n) {
    if (dim == kUncut) return whole;
    whole.type.shape[dim] = n;
    if (!whole.placement) return whole;
    whole.logical[dim] = n;
    Placement placement = *whole.placement;
    placement.sharding.dims[at(dim)].clear();
    whole.placement = std::move(placement);
    return whole;
  }

  Rewrite rewrite_;
  const StripNodes& nodes_;
  ValueTable<Value> now_;     // of this strip; sums up to it
  ValueTable<ValueIds> all_;  // of all strips
  std::map<std::pair<ValueId, int>, Value> slices_;
};

/// How many elements of `dim` a strip has; nullopt where there would be only one.
std::optional<std::int64_t> strip_of(const TensorType& type, int dim, const StripLimits& limits) {
  const Shape& shape = type.shape;
  const std::int64_t rows = shape.numel() / shape.back(),
                     least = limits.least_rows * size_of(DType::F32) / size_of(type.dtype);
  const std::int64_t most =
      std::min({limits.most_strips, shape[dim], rows / std::max<std::int64_t>(least, 1)});
  if (most < 2) return std::nullopt;
  return (shape[dim] + most - 1) / most;
}

/// `once`: the region runs once in a step. Sums and operands that strips need beside each other may
/// take what they save.
std::optional<Graph> in_strips(const Graph& graph, ValueId value, bool once,
                               const StripLimits& limits) {
  const Shape& shape = graph.type(value).shape;
  int dim = 0;
  while (dim + 1 < shape.ndim() && shape[dim] == 1) ++dim;
  if (dim + 1 >= shape.ndim()) return std::nullopt;  // one row
  const std::optional<std::int64_t> step = strip_of(graph.type(value), dim, limits);
  StripNodes nodes(graph, value);
  if (!step || !nodes.find(dim)) return std::nullopt;
  const std::int64_t bytes = graph.type(value).bytes(), saved = bytes - bytes / shape[dim] * *step;
  if (nodes.wide_bytes() + nodes.operand_bytes(once) >= saved) return std::nullopt;
  return StripWriter(graph, nodes).run(shape[dim], *step);
}

/// The slots by which Forward hands large values over to Backward, the largest first.
std::vector<std::string> large_slots(const Graph& forward, const Graph& backward,
                                     const StripLimits& limits) {
  std::vector<const Output*> found;
  const auto bytes = [&](const Output* output) { return forward.type(output->value).bytes(); };
  for (const Output& output : forward.outputs()) {
    if (output.kind == Output::Kind::Slot && bytes(&output) >= limits.least_bytes &&
        !forward.node(output.value.node).op->traits.leaf && reads_slot(backward, output.name))
      found.push_back(&output);
  }
  std::ranges::stable_sort(found, std::greater<>(), bytes);
  std::vector<std::string> out;
  for (const Output* output : found) out.push_back(output->name);
  return out;
}

/// True where one of the values that a chunk hands over is computed in strips now.
bool cut_largest(Program& program, int chunk, const StripLimits& limits) {
  const int f = program.index_of(RegionKind::Forward, chunk),
            b = program.index_of(RegionKind::Backward, chunk);
  Graph &forward = program.regions[at(f)].graph, &backward = program.regions[at(b)].graph;
  const auto runs = std::ranges::count_if(program.actions, [&](const Action& action) {
    return action.region == RegionKind::Backward && action.chunk == chunk;
  });
  for (const std::string& slot : large_slots(forward, backward, limits)) {
    std::optional<Deferred> deferred = defer(program, f, b, slot);
    if (!deferred) continue;
    std::optional<Graph> cut = in_strips(deferred->backward, deferred->value, runs == 1, limits);
    if (!cut) continue;
    forward = std::move(deferred->forward);
    backward = *std::move(cut);
    return true;
  }
  return false;
}

}  // namespace

Program strips(Program program, const StripLimits& limits) {
  std::set<int> chunks;
  for (const Region& region : program.regions) {
    if (region.kind == RegionKind::Backward) chunks.insert(region.chunk);
  }
  bool changed = false;
  for (const int chunk : chunks) changed = cut_largest(program, chunk, limits) || changed;
  if (changed) program.rings = find_rings(program);
  return program;
}

}  // namespace tessera
