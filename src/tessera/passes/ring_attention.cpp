#include "tessera/passes/ring_attention.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/attention_sight.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

constexpr int kTime = 1;  // the dim of queries, keys and values that is cut

/// A node whose keys and values travel.
struct Ring {
  std::string axis;
  std::vector<std::int64_t> steps;  // in which some rank sees its block: 0 first
  double pairs = 0;                 // of a query and a key that it sees, in a step: mean of ranks
  std::vector<NodeId> scatters;     // of the gradients of keys and of values
};

bool is_gradient(const Node& node) { return node.op == &kAttentionGrad; }
/// The operand that is q; k and v follow it.
std::size_t first_of(const Node& node) { return is_gradient(node) ? 1 : 0; }
/// Its operand that is a mask, if there is one.
std::size_t mask_of(const Node& node) { return is_gradient(node) ? 6 : 3; }

/// Finds the rings of a region.
class Rings {
 public:
  explicit Rings(const Graph& graph) : graph_(graph), users_(graph) {
    for (const Output& output : graph.outputs()) leaving_.insert(output.value);
  }

  std::map<NodeId, Ring> find() const {
    std::map<NodeId, Ring> out;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (std::optional<Ring> ring = at(id); ring && is_all_that_reads(id)) out.emplace(id, *ring);
    }
    return out;
  }

 private:
  const std::vector<std::string>& cuts(ValueId v, int dim) const {
    return graph_.result(v).placement->sharding.dims[tessera::at(dim)];
  }

  /// As if nothing else read what it gathers.
  std::optional<Ring> at(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.op != &kAttention && node.op != &kAttentionGrad) return std::nullopt;
    const std::size_t q = first_of(node);
    const std::optional<std::string> axis = gathered_along(node.inputs[q + 1]);
    if (!axis || gathered_along(node.inputs[q + 2]) != axis) return std::nullopt;
    if (cuts(node.inputs[q], kTime) != std::vector{*axis}) return std::nullopt;
    const OpCall call = graph_.call(id);
    if (call.flag("mask")) {
      const ValueId mask = node.inputs[mask_of(node)];
      if (!cuts(mask, graph_.type(mask).ndim() - 1).empty()) return std::nullopt;
    }
    Ring out{*axis, {}, 0, {}};
    if (is_gradient(node) && !find_scatters(id, out)) return std::nullopt;
    find_steps(call, graph_.type(node.inputs[q + 1]).shape[kTime], out);
    return out;
  }

  /// The axis along which an even cut of the value's time is joined.
  std::optional<std::string> gathered_along(ValueId v) const {
    const Node& node = graph_.node(v.node);
    if (node.op != &kAllGather || leaving_.contains(v)) return std::nullopt;
    const OpCall call = graph_.call(v.node);
    const std::string axis(call.string("axes"));
    const Result& part = graph_.result(node.inputs[0]);
    const std::int64_t n = graph_.mesh().size(axis);
    const bool fits = call.integer("dim") == kTime && n > 1 &&
                      part.placement->sharding.dims[kTime] == std::vector{axis} &&
                      part.type.shape[kTime] * n == part.logical[kTime];
    return fits ? std::optional(axis) : std::nullopt;
  }

  bool is_all_that_reads(NodeId id) const {
    const Node& node = graph_.node(id);
    for (std::size_t i = first_of(node) + 1; i < first_of(node) + 3; ++i) {
      for (const NodeId user : users_(node.inputs[i].node)) {
        if (!at(user)) return false;
      }
    }
    return true;
  }

  /// What sums up the gradients of keys and values, and nothing else reads.
  bool find_scatters(NodeId id, Ring& ring) const {
    const std::span<const NodeId> users = users_(id);
    for (int result = 1; result < 3; ++result) {
      const ValueId gradient{id, result};
      const auto reads = [&](NodeId user) {
        const ValueIds& ins = graph_.node(user).inputs;
        return std::ranges::find(ins, gradient) != ins.end();
      };
      if (leaving_.contains(gradient) || std::ranges::count_if(users, reads) != 1) return false;
      const NodeId scatter = *std::ranges::find_if(users, reads);
      if (graph_.node(scatter).op != &kReduceScatter) return false;
      const OpCall call = graph_.call(scatter);
      if (call.string("axes") != ring.axis || call.integer("dim") != kTime ||
          parse_monoid(call.string("monoid")) != Monoid::Sum)
        return false;
      ring.scatters.push_back(scatter);
    }
    return true;
  }

  /// `t`: keys of all ranks.
  void find_steps(const OpCall& call, std::int64_t t, Ring& ring) const {
    const Sight sight = sight_of(call);
    const std::int64_t n = graph_.mesh().size(ring.axis), keys = t / n;
    const std::int64_t queries = call.in(&call.op() == &kAttentionGrad ? 1 : 0).shape[kTime];
    for (std::int64_t i = 0; i < n; ++i) {
      // The block lies i blocks back, or n - i blocks ahead on the i first ranks.
      const bool behind = i == 0 || -sight.first > (i - 1) * keys,
                 ahead = i > 0 && sight.last > (n - i - 1) * keys;
      if (behind || ahead) ring.steps.push_back(i);
    }
    ring.pairs = sight.pairs(queries, t) / static_cast<double>(ring.steps.size());
  }

  const Graph& graph_;
  const Users users_;
  std::set<ValueId> leaving_;
};

/// Writes a region anew, with rings.
class RingWriter {
 public:
  RingWriter(const Graph& graph, const std::map<NodeId, Ring>& rings)
      : rewrite_(graph), rings_(rings) {
    for (const auto& [id, ring] : rings) {
      const Node& node = graph.node(id);
      for (std::size_t i = 1; i < 3; ++i) replaced_.insert(node.inputs[first_of(node) + i].node);
      replaced_.insert(ring.scatters.begin(), ring.scatters.end());
    }
  }

  Graph run() {
    for (NodeId id = 0; id < from().size(); ++id) {
      if (const auto ring = rings_.find(id); ring != rings_.end()) {
        write(id, ring->second);
      } else if (!replaced_.contains(id)) {
        rewrite_.copy(id);
      }
    }
    return rewrite_.finish();
  }

 private:
  const Graph& from() const { return rewrite_.from(); }
  const Result& result_of(Value v) { return rewrite_.to().so_far().result(v.id()); }

  void write(NodeId id, const Ring& ring) {
    const Node& node = from().node(id);
    const std::size_t q = first_of(node);
    const auto own = [&](std::size_t operand) {
      return rewrite_(from().node(node.inputs[operand].node).inputs[0]);
    };
    Block next{own(q + 1), own(q + 2)};
    std::vector<Value> sums;
    for (const std::int64_t i : ring.steps) {
      const Block block = next;
      const bool first = i == 0;
      // On their way while this step computes: sums of it, which are needed first, and the next
      // block.
      if (is_gradient(node) && !first) {
        for (std::size_t r = 1; r < 3; ++r) sums[r] = turned(sums[r], ring, i, node);
      }
      if (i != ring.steps.back()) {
        const std::int64_t to = *std::ranges::upper_bound(ring.steps, i);
        next = {turned(block.keys, ring, to, node), turned(block.values, ring, to, node)};
      }
      std::vector<Value> now = step(id, ring, i, block);
      sums = first               ? wide(std::move(now), node)
             : is_gradient(node) ? added(sums, wide(std::move(now), node), node)
                                 : merged(sums, now, node);
    }
    rewrite_.map({id, 0}, in_dtype(sums[0], from().type({id, 0}).dtype, node));
    if (!is_gradient(node)) return rewrite_.map({id, 1}, sums[1]);
    for (std::size_t r = 1; r < 3; ++r) {
      const ValueId home{ring.scatters[r - 1], 0};
      const Value sum = ring.steps.size() > 1 ? turned(sums[r], ring, 0, node) : sums[r];
      const Value out = in_dtype(sum, from().type(home).dtype, node);
      check(result_of(out) == from().result(home), node.op->name, ": the ring ends with ",
            *result_of(out).placement, ", and ", *from().result(home).placement, " is wanted");
      rewrite_.map(home, out);
    }
  }

  struct Block {
    Value keys, values;
  };

  /// Attention, or its gradient, of the block that a rank has in step `i`.
  std::vector<Value> step(NodeId id, const Ring& ring, std::int64_t i, const Block& block) {
    Node node = from().node(id);
    const std::size_t q = first_of(node);
    const bool masked = from().call(id).flag("mask");
    ValueIds inputs;
    for (std::size_t operand = 0; operand < node.inputs.size(); ++operand) {
      const ValueId old = node.inputs[operand];
      const Value now = operand == q + 1                     ? block.keys
                        : operand == q + 2                   ? block.values
                        : masked && operand == mask_of(node) ? seen(old, ring, i, node)
                                                             : rewrite_(old);
      inputs.push_back(now.id());
    }
    if (is_gradient(node)) {
      for (std::size_t r = 1; r < 3; ++r) {
        Result& result = node.results[r];
        Placement placement = *result.placement;
        placement.sharding = placement.sharding.without(ring.axis);
        result = on_axis(result, std::move(placement), kTime, axis_of(ring, i));
      }
    }
    const auto pairs = at(node.op->attrs.find("pairs"));
    if (node.attrs.size() == pairs) node.attrs = node.attrs.with(pairs, ring.pairs);
    node.name = {};
    return rewrite_.to().copy(std::move(node), std::move(inputs));
  }

  /// Which keys of step `i` a mask of all keys lets be seen.
  Value seen(ValueId mask, const Ring& ring, std::int64_t i, const Node& like) {
    const Result& all = from().result(mask);
    const int dim = all.type.ndim() - 1;
    Result part = on_axis(all, *all.placement, dim, axis_of(ring, i));
    const Shape& shape = part.type.shape;
    Attrs attrs{axis_of(ring, i), std::int64_t{dim},
                std::vector<std::int64_t>(shape.begin(), shape.end())};
    return add(kShard, std::move(attrs), {part}, {rewrite_(mask).id()}, like)[0];
  }

  /// The axis by which keys are cut in step `i`.
  std::string axis_of(const Ring& ring, std::int64_t i) const {
    return i == 0 ? ring.axis : axis_part(ring.axis, 1, from().mesh().size(ring.axis), i);
  }

  /// The result with `dim` cut along that axis alone.
  Result on_axis(Result result, Placement placement, int dim, std::string axis) const {
    placement.sharding.dims[at(dim)] = {std::move(axis)};
    result.type.shape = local_shape(result.logical, placement.sharding, from().mesh());
    result.placement = std::move(placement);
    return result;
  }

  /// What each rank has in step `i` of the value.
  Value turned(Value value, const Ring& ring, std::int64_t i, const Node& like) {
    const Result& now = result_of(value);
    const Result then = on_axis(now, *now.placement, kTime, axis_of(ring, i));
    const Shape& shape = then.type.shape;
    Attrs attrs{ring.axis, std::vector<std::int64_t>(shape.begin(), shape.end())};
    return add(kPermute, std::move(attrs), {then}, {value.id()}, like)[0];
  }

  /// Results in what sums of them are made in. A logsumexp is so already.
  std::vector<Value> wide(std::vector<Value> results, const Node& like) {
    for (Value& value : results) value = in_dtype(value, computed_in(value.dtype()), like);
    return results;
  }

  Value in_dtype(Value value, DType dtype, const Node& like) {
    if (value.dtype() == dtype) return value;
    Result result = result_of(value);
    result.type.dtype = dtype;
    return add(kCast, {dtype}, {result}, {value.id()}, like)[0];
  }

  std::vector<Value> added(const std::vector<Value>& sums, const std::vector<Value>& more,
                           const Node& like) {
    std::vector<Value> out;
    for (std::size_t r = 0; r < sums.size(); ++r) {
      const ValueIds terms{sums[r].id(), more[r].id()};
      out.push_back(add(kAdd, {}, {result_of(sums[r])}, terms, like)[0]);
    }
    return out;
  }

  std::vector<Value> merged(const std::vector<Value>& sums, const std::vector<Value>& more,
                            const Node& like) {
    return add(kMergeAttention, {}, {result_of(sums[0]), result_of(sums[1])},
               {sums[0].id(), sums[1].id(), more[0].id(), more[1].id()}, like);
  }

  /// A node with the marks of another.
  std::vector<Value> add(const OpDef& op, Attrs attrs, std::vector<Result> results, ValueIds inputs,
                         const Node& like) {
    Node node;
    node.op = &op;
    node.attrs = std::move(attrs);
    node.block = like.block;
    node.phase = like.phase;
    node.recompute = like.recompute;
    node.stage = like.stage;
    node.where = like.where;
    node.results = std::move(results);
    return rewrite_.to().copy(std::move(node), std::move(inputs));
  }

  Rewrite rewrite_;
  const std::map<NodeId, Ring>& rings_;
  std::set<NodeId> replaced_;  // nodes that rings do without
};

}  // namespace

Program ring_attention(Program program) {
  for (Region& region : program.regions) {
    const std::map<NodeId, Ring> rings = Rings(region.graph).find();
    if (!rings.empty()) region.graph = RingWriter(region.graph, rings).run();
  }
  return program;
}

}  // namespace tessera
