#include "tessera/passes/ring_attention.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/attention_rings.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// Writes a region anew, with rings.
class RingWriter {
 public:
  RingWriter(const Graph& graph, const AttentionRings& rings) : rewrite_(graph), rings_(rings) {
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

  /// Keys and values of a half, and the sums of their gradients.
  struct Block {
    Value keys, values, of_keys, of_values;
  };
  /// A call of one step: queries of half `q`, keys of half `k`.
  struct At {
    std::int64_t step;
    Half q, k;
  };

  void write(NodeId id, const AttentionRing& ring) {
    const Node& node = from().node(id);
    const bool gradient = is_gradient(node);
    std::vector<ValueIds> queries;  // per half, operands with keys and masks of keys still whole
    for (const Half half : ring.halves) queries.push_back(operands_of(node, ring, half));
    std::vector<Block> next;
    for (const Half half : ring.halves) next.push_back(own_block(node, ring, half));
    std::vector<std::vector<Value>> sums(queries.size());  // y and logsumexp, or dq
    for (const std::int64_t i : ring.steps) {
      // On their way while this step computes: sums of it, which are needed first, and the next
      // block.
      std::vector<Block> blocks = next;
      for (Block& block : blocks) {
        if (!gradient || i == 0) continue;
        block.of_keys = turned(block.of_keys, ring, i, node);
        block.of_values = turned(block.of_values, ring, i, node);
      }
      if (i != ring.steps.back()) {
        const std::int64_t to = *std::ranges::upper_bound(ring.steps, i);
        for (Block& block : next) {
          block.keys = turned(block.keys, ring, to, node);
          block.values = turned(block.values, ring, to, node);
        }
      }
      for (std::size_t q = 0; q < queries.size(); ++q) {
        for (std::size_t k = 0; k < blocks.size(); ++k) {
          Block& block = blocks[k];
          const std::vector<Value> now =
              step(id, ring, {i, ring.halves[q], ring.halves[k]}, queries[q], block);
          if (!gradient) {
            sums[q] = merged(sums[q], now, node);
            continue;
          }
          sums[q] = {added(sums[q].empty() ? Value() : sums[q][0], now[0], node)};
          block.of_keys = added(block.of_keys, now[1], node);
          block.of_values = added(block.of_values, now[2], node);
        }
      }
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        next[k].of_keys = blocks[k].of_keys, next[k].of_values = blocks[k].of_values;
      }
    }
    leave({id, 0}, each(sums, [](const auto& of_half) { return of_half[0]; }), ring, kTime, node);
    if (!gradient) {
      const int last = from().type({id, 1}).ndim() - 1;
      return leave({id, 1}, each(sums, [](const auto& of_half) { return of_half[1]; }), ring, last,
                   node);
    }
    const auto home = [&](Value sum) {
      return ring.steps.size() > 1 ? turned(sum, ring, 0, node) : sum;
    };
    leave({ring.scatters[0], 0}, each(next, [&](const Block& b) { return home(b.of_keys); }), ring,
          kTime, node);
    leave({ring.scatters[1], 0}, each(next, [&](const Block& b) { return home(b.of_values); }),
          ring, kTime, node);
  }

  template <typename Items, typename F>
  static std::vector<Value> each(const Items& items, const F& f) {
    std::vector<Value> out;
    for (const auto& item : items) out.push_back(f(item));
    return out;
  }

  /// The values of all halves take the place of the old value.
  void leave(ValueId old, std::vector<Value> halves, const AttentionRing& ring, int dim,
             const Node& like) {
    const Result& wanted = from().result(old);
    for (Value& half : halves) half = in_dtype(half, wanted.type.dtype, like);
    const Value out = joined(halves, ring, dim, like);
    check(result_of(out) == wanted, like.op->name, ": the ring ends with ",
          *result_of(out).placement, ", and ", *wanted.placement, " is wanted");
    rewrite_.map(old, out);
  }

  /// The operands of a half of the queries; keys and values are empty.
  ValueIds operands_of(const Node& node, const AttentionRing& ring, Half half) {
    ValueIds out;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool travels = i == first_of(node) + 1 || i == first_of(node) + 2;
      out.push_back(travels ? ValueId() : half_of(rewrite_(node.inputs[i]), ring, half, node).id());
    }
    return out;
  }

  Block own_block(const Node& node, const AttentionRing& ring, Half half) {
    const auto own = [&](std::size_t operand) {
      const Node& gather = from().node(node.inputs[first_of(node) + operand].node);
      return half_of(rewrite_(gather.inputs[0]), ring, half, node);
    };
    return {own(1), own(2), {}, {}};
  }

  /// A rank's half of a value that the axis cuts, in a zigzag; all of it without one.
  Value half_of(Value value, const AttentionRing& ring, Half half, const Node& like) {
    const Result& whole = result_of(value);
    const int dim = whole.placement->sharding.dim_of(ring.axis);
    if (half == Half::None || dim < 0) return value;
    // Halves that come first have even numbers.
    const bool first = half == Half::Even;
    const std::int64_t size = whole.type.shape[dim] / 2;
    const Result part =
        on_axis(whole, *whole.placement, dim, axis_of(ring, 0, first ? Half::Low : Half::High));
    const Value own = add(kSlice, {std::int64_t{dim}, first ? 0 : size, size, std::int64_t{1}},
                          {part}, {value.id()}, like)[0];
    return moved(own, ring, dim, axis_of(ring, 0, half), like);
  }

  /// The value of which these are the halves.
  Value joined(const std::vector<Value>& halves, const AttentionRing& ring, int dim,
               const Node& like) {
    if (halves.size() == 1) return halves[0];
    ValueIds own;
    for (const Half half : {Half::Low, Half::High}) {
      const Value from = halves[half == Half::Low ? 0 : 1];
      own.push_back(moved(from, ring, dim, axis_of(ring, 0, half), like).id());
    }
    const Result& half = result_of(halves[0]);
    const Result whole = on_axis(half, *half.placement, dim, ring.axis);
    return add(kConcat, {std::int64_t{dim}}, {whole}, std::move(own), like)[0];
  }

  /// Attention, or its gradient, of one half of queries and one of keys.
  std::vector<Value> step(NodeId id, const AttentionRing& ring, const At& where, ValueIds inputs,
                          const Block& block) {
    Node node = from().node(id);
    const std::size_t q = first_of(node);
    inputs[q + 1] = block.keys.id(), inputs[q + 2] = block.values.id();
    const std::string queries = axis_of(ring, 0, where.q),
                      keys = axis_of(ring, where.step, where.k);
    // The ring has come all the way round where its step is 0: a mask's rows are cut by that axis,
    // and its keys by one of another name.
    const std::int64_t n = from().mesh().size(ring.axis), round = where.step == 0 ? n : where.step;
    if (from().call(id).flag("mask"))
      inputs[mask_of(node)] = seen(inputs[mask_of(node)], axis_of(ring, round, where.k), node).id();
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      Result& result = node.results[r];
      Placement placement = *result.placement;
      const bool of_keys = is_gradient(node) && r > 0;
      if (of_keys) placement.sharding = placement.sharding.without(ring.axis);
      const int dim = of_keys ? kTime : placement.sharding.dim_of(ring.axis);
      result = on_axis(result, std::move(placement), dim, of_keys ? keys : queries);
    }
    const auto pairs = at(node.op->attrs.find("pairs"));
    if (node.attrs.size() == pairs) node.attrs = node.attrs.with(pairs, ring.pairs);
    node.name = {};
    return rewrite_.to().copy(std::move(node), std::move(inputs));
  }

  /// Which of the keys that `axis` leaves a rank a mask of all keys lets be seen.
  Value seen(ValueId mask, const std::string& axis, const Node& like) {
    const Result& all = rewrite_.to().so_far().result(mask);
    const int dim = all.type.ndim() - 1;
    const Result part = on_axis(all, *all.placement, dim, axis);
    return add(kShard, {axis, std::int64_t{dim}, sizes(part)}, {part}, {mask}, like)[0];
  }

  /// The axis that cuts tokens in a step.
  std::string axis_of(const AttentionRing& ring, std::int64_t step, Half half) const {
    if (step == 0 && half == Half::None) return ring.axis;
    return axis_part({ring.axis, 1, from().mesh().size(ring.axis), step, half});
  }

  /// The result with `dim` cut along that axis alone.
  Result on_axis(Result result, Placement placement, int dim, std::string axis) const {
    placement.sharding.dims[at(dim)] = {std::move(axis)};
    result.type.shape = local_shape(result.logical, placement.sharding, from().mesh());
    result.placement = std::move(placement);
    return result;
  }

  /// What each rank has in that step of a value that the others have in theirs.
  Value turned(Value value, const AttentionRing& ring, std::int64_t step, const Node& like) {
    const std::string now = result_of(value).placement->sharding.dims[kTime][0];
    const Half half = now == ring.axis ? Half::None : parse_axis_part(now)->half;
    return moved(value, ring, kTime, axis_of(ring, step, half), like);
  }

  /// The shard that `axis` gives each rank, from the rank of the ring that has it.
  Value moved(Value value, const AttentionRing& ring, int dim, std::string axis, const Node& like) {
    const Result& now = result_of(value);
    const Result then = on_axis(now, *now.placement, dim, std::move(axis));
    return add(kPermute, {ring.axis, sizes(then)}, {then}, {value.id()}, like)[0];
  }

  static std::vector<std::int64_t> sizes(const Result& result) {
    return {result.type.shape.begin(), result.type.shape.end()};
  }

  Value in_dtype(Value value, DType dtype, const Node& like) {
    if (value.dtype() == dtype) return value;
    Result result = result_of(value);
    result.type.dtype = dtype;
    return add(kCast, {dtype}, {result}, {value.id()}, like)[0];
  }

  /// In what sums are made in.
  Value wide(Value value, const Node& like) {
    return in_dtype(value, computed_in(value.dtype()), like);
  }

  Value added(Value sum, Value term, const Node& like) {
    const Value more = wide(term, like);
    if (!sum.valid()) return more;
    return add(kAdd, {}, {result_of(sum)}, {sum.id(), more.id()}, like)[0];
  }

  std::vector<Value> merged(const std::vector<Value>& sums, const std::vector<Value>& more,
                            const Node& like) {
    if (sums.empty()) return {wide(more[0], like), more[1]};
    return add(kMergeAttention, {}, {result_of(sums[0]), result_of(sums[1])},
               {sums[0].id(), sums[1].id(), more[0].id(), more[1].id()}, like);
  }

  /// A node with the marks of another.
  std::vector<Value> add(const OpDef& op, Attrs attrs, std::vector<Result> results, ValueIds inputs,
                         const Node& like) {
    Node node = marked_like(like, op, std::move(attrs), std::move(results));
    node.recompute = like.recompute;
    return rewrite_.to().copy(std::move(node), std::move(inputs));
  }

  Rewrite rewrite_;
  const AttentionRings& rings_;
  std::set<NodeId> replaced_;  // nodes that rings do without
};

}  // namespace

Program ring_attention(Program program, const RingLimits& limits) {
  for (Region& region : program.regions) {
    const AttentionRings rings = find_attention_rings(region.graph, limits);
    if (!rings.empty()) region.graph = RingWriter(region.graph, rings).run();
  }
  return program;
}

}  // namespace tessera
