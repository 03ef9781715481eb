#include "tessera/ops/interpret_ranks.h"

#include <algorithm>
#include <limits>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"

namespace tessera {

namespace {

using Tensors = std::vector<HostTensor>;

/// What nobody may read: NaN; integers that are neither small nor the least or largest, of both
/// signs, so that neither a sum nor a maximum nor a minimum ignores them.
void spoil(HostTensor& tensor, std::int64_t i) {
  if (is_float(tensor.dtype())) return tensor.set(i, std::numeric_limits<double>::quiet_NaN());
  tensor.set(i, tensor.dtype() == DType::Bool ? 1 : i % 2 == 0 ? 1e9 : -1e9);
}

std::vector<Extent> extents(const Result& result, const Mesh& mesh, const Coordinates& where) {
  std::vector<Extent> out;
  for (int d = 0; d < result.logical.ndim(); ++d)
    out.push_back(extent(result.logical[d], result.placement->sharding.dims[at(d)], mesh, where));
  return out;
}

/// Visits every element of a shard: f(index in the shard, index in the whole; -1 beyond it).
template <typename F>
void each_element(const Result& result, const Mesh& mesh, const Coordinates& where, F&& f) {
  const std::vector<Extent> parts = extents(result, mesh, where);
  const Shape strides = result.logical.strides();
  std::int64_t i = 0;
  Shape index = Shape::of(result.type.ndim(), 0);
  for (const std::int64_t n = result.type.numel(); i < n; ++i) {
    std::int64_t whole = 0;
    for (int d = 0; d < index.ndim() && whole >= 0; ++d) {
      const Extent& part = parts[at(d)];
      whole = index[d] < part.valid ? whole + (part.start + index[d]) * strides[d] : -1;
    }
    f(i, whole);
    for (int d = index.ndim(); d-- > 0;) {
      if (++index[d] < result.type.shape[d]) break;
      index[d] = 0;
    }
  }
}

std::vector<std::string> axes_of(const Node& node) {
  return split(std::get<std::string>(node.attrs[0]), '.');
}

}  // namespace

class RanksInterpreter::Ranks {
 public:
  Ranks(const Graph& graph, const std::vector<Bindings>& inputs, const Interpretation& how,
        NodeId deleted)
      : graph_(graph), mesh_(graph.mesh()), inputs_(inputs), deleted_(deleted) {
    for (std::int64_t r = 0; r < mesh_.ranks(); ++r) {
      how_.push_back(how);
      for (const auto& [axis, i] : coordinates_of(mesh_, r)) how_.back().at[axis] = i;
    }
    check(inputs.size() == how_.size(), "inputs of ", inputs.size(), " ranks, not ", how_.size());
    for (std::size_t r = 0; r < how_.size(); ++r) values_.emplace_back(graph.nodes().size());
  }

  NodeId next() const { return next_; }

  void step() {
    const NodeId id = next_++;
    const Node& node = graph_.node(id);
    for (std::size_t r = 0; r < how_.size(); ++r) {
      if (node.op->traits.exchanges) continue;
      values_[r][at(id)] = node.op->traits.leaf ? interpret_leaf(graph_, id, inputs_[r], how_[r])
                                                : interpret_node(graph_, id, ins(r, id), how_[r]);
    }
    if (node.op->traits.exchanges) exchange(id);
    if (!node.op->traits.leaf) spoil_padding(id);
  }

  Tensors values(ValueId v) const {
    Tensors out;
    for (const std::vector<Tensors>& of_rank : values_)
      out.push_back(of_rank[at(v.node)][at(v.index)]);
    return out;
  }

 private:
  HostTensor& value(std::size_t rank, ValueId v) { return values_[rank][at(v.node)][at(v.index)]; }
  Tensors ins(std::size_t rank, NodeId id) {
    Tensors out;
    for (const ValueId input : graph_.node(id).inputs) out.push_back(value(rank, input));
    return out;
  }

  void spoil_padding(NodeId id) {
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const Result& result = node.results[i];
      if (!result.placement || node.op == &kClearPadding) continue;
      for (std::size_t r = 0; r < how_.size(); ++r) {
        each_element(result, mesh_, how_[r].at, [&](std::int64_t e, std::int64_t whole) {
          if (whole < 0) spoil(values_[r][at(id)][i], e);
        });
      }
    }
  }

  /// Every rank sees what the ranks of its group hold, as elements of the whole.
  void exchange(NodeId id) {
    const Node& node = graph_.node(id);
    const Result &from = graph_.result(node.inputs[0]), &to = node.results[0];
    for (std::size_t r = 0; r < how_.size(); ++r) {
      if (node.op == &kPermute && id != deleted_) {
        // A copy of its own: spoil_padding() writes into it, and the sender keeps what it sent.
        const std::size_t giver = sender(from, to, r, axes_of(node));
        values_[r][at(id)] = {value(giver, node.inputs[0]).clone()};
        continue;
      }
      HostTensor out(value(r, node.inputs[0]).dtype(), to.type.shape);
      const std::vector<std::size_t> group =
          id == deleted_ ? std::vector{r} : members(r, axes_of(node));
      const int monoid = node.op->attrs.find("monoid");
      // Where the group's shards cover the whole, by element.
      const double nothing = id == deleted_ ? 0 : std::numeric_limits<double>::quiet_NaN();
      std::vector<double> whole(at(to.logical.numel()), nothing);
      std::vector<bool> seen(whole.size(), false);
      for (const std::size_t member : group) {
        const HostTensor& held = value(member, node.inputs[0]);
        each_element(from, mesh_, how_[member].at, [&](std::int64_t e, std::int64_t w) {
          if (w < 0 || (node.op == &kCombine && !has_id(node, member, e, held.shape()))) return;
          const bool again = monoid >= 0 && seen[at(w)];
          whole[at(w)] = again
                             ? combine(parse_monoid(std::get<std::string>(node.attrs[at(monoid)])),
                                       whole[at(w)], held.at(e))
                             : held.at(e);
          seen[at(w)] = true;
        });
      }
      // Of a row without an id of any rank the sum is 0.
      const bool empty = node.op == &kCombine && id != deleted_;
      std::vector<bool> own(whole.size(), node.op != &kDispatch);
      if (node.op == &kDispatch)
        each_element(from, mesh_, how_[r].at, [&](std::int64_t, std::int64_t w) {
          if (w >= 0) own[at(w)] = true;
        });
      each_element(to, mesh_, how_[r].at, [&](std::int64_t e, std::int64_t w) {
        if (w < 0) return;
        const bool zero =
            (empty && !seen[at(w)]) || (!own[at(w)] && !has_id(node, r, e, to.type.shape));
        out.set(e, zero ? 0 : whole[at(w)]);
      });
      values_[r][at(id)] = {out};
    }
  }

  /// Of dispatch and combine: whether the row of element `e` of a tensor of this shape has an id of
  /// the rank.
  bool has_id(const Node& node, std::size_t rank, std::int64_t e, const Shape& shape) {
    const HostTensor& ids = value(rank, node.inputs[1]);
    const std::int64_t choices = ids.shape().back(), rows = ids.numel() / choices,
                       per_rank = std::get<std::int64_t>(node.attrs[1]),
                       row = e / (shape.numel() / rows);
    const std::int64_t first =
        per_rank * coordinate(mesh_, how_[rank].at, std::get<std::string>(node.attrs[0]));
    for (std::int64_t i = 0; i < choices; ++i) {
      const auto one = static_cast<std::int64_t>(ids.at(row * choices + i));
      if (one >= first && one < first + per_rank) return true;
    }
    return false;
  }

  /// The ranks that differ from `rank` along `axes` only, row by row.
  std::vector<std::size_t> members(std::size_t rank, const std::vector<std::string>& axes) const {
    std::vector<std::size_t> out;
    for (const std::int64_t other : ranks_along(mesh_, axes, static_cast<std::int64_t>(rank)))
      out.push_back(at(other));
    return out;
  }

  /// The rank of the group that holds what `rank` is to hold.
  std::size_t sender(const Result& from, const Result& to, std::size_t rank,
                     const std::vector<std::string>& axes) const {
    for (const std::size_t other : members(rank, axes)) {
      if (permutes(from.placement->sharding, how_[other].at, to.placement->sharding, how_[rank].at,
                   axes, mesh_))
        return other;
    }
    throw Broken("no rank holds what a permute wants");
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const std::vector<Bindings>& inputs_;
  const NodeId deleted_;
  std::vector<Interpretation> how_;           // per rank
  std::vector<std::vector<Tensors>> values_;  // [rank][node]
  NodeId next_ = 0;
};

RanksInterpreter::RanksInterpreter(const Graph& graph, const std::vector<Bindings>& inputs,
                                   const Interpretation& how, NodeId deleted)
    : ranks_(std::make_unique<Ranks>(graph, inputs, how, deleted)) {}
RanksInterpreter::~RanksInterpreter() = default;
NodeId RanksInterpreter::next() const { return ranks_->next(); }
void RanksInterpreter::step() { ranks_->step(); }
std::vector<HostTensor> RanksInterpreter::values(ValueId v) const { return ranks_->values(v); }

std::vector<Tensors> interpret_ranks(const Graph& graph, const std::vector<Bindings>& inputs,
                                     const Interpretation& how, NodeId deleted) {
  RanksInterpreter ranks(graph, inputs, how, deleted);
  while (ranks.next() < graph.size()) ranks.step();
  std::vector<Tensors> out(inputs.size());
  for (const Output& output : graph.outputs()) {
    const Tensors values = ranks.values(output.value);
    for (std::size_t r = 0; r < values.size(); ++r) out[r].push_back(values[r]);
  }
  return out;
}

HostTensor shard_of(const HostTensor& whole, const Result& result, const Mesh& mesh,
                    const Coordinates& where, Beyond beyond) {
  HostTensor out(whole.dtype(), result.type.shape);
  each_element(result, mesh, where, [&](std::int64_t e, std::int64_t w) {
    if (w >= 0) return out.set(e, whole.at(w));
    if (beyond == Beyond::Poison) spoil(out, e);
  });
  return out;
}

bool has_zero_padding(const HostTensor& shard, const Result& result, const Mesh& mesh,
                      const Coordinates& where) {
  bool out = true;
  each_element(result, mesh, where,
               [&](std::int64_t e, std::int64_t w) { out = out && (w >= 0 || shard.at(e) == 0); });
  return out;
}

HostTensor joined(const std::vector<HostTensor>& shards, const Result& result, const Mesh& mesh,
                  Replicas replicas) {
  HostTensor out(shards[0].dtype(), result.logical);
  std::vector<bool> seen(at(out.numel()), false);
  for (std::size_t r = 0; r < shards.size(); ++r) {
    each_element(result, mesh, coordinates_of(mesh, static_cast<std::int64_t>(r)),
                 [&](std::int64_t e, std::int64_t w) {
                   if (w < 0 || (replicas == Replicas::First && seen[at(w)])) return;
                   const double x = shards[r].at(e), y = out.at(w);
                   check(!seen[at(w)] || x == y || (x != x && y != y), "replicas differ: rank ", r,
                         " has ", x, " where another has ", y, ", element ", w);
                   out.set(w, x);
                   seen[at(w)] = true;
                 });
  }
  return out;
}

}  // namespace tessera
