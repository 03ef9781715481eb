#include "tessera/passes/dispatch.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

constexpr double kMostRows = 0.9;         // of all, in the mean
constexpr std::int64_t kLeastBytes = 64;  // of a row

using AxisNames = std::vector<std::string>;

/// By which ids rows are read, and how many groups a rank has.
struct RowUse {
  ValueId ids;
  std::int64_t groups = 0;
  friend bool operator==(const RowUse&, const RowUse&) = default;
};

class Dispatch {
 public:
  explicit Dispatch(const Graph& graph) : graph_(graph), users_(graph), rewrite_(graph) {}

  Graph run() {
    for (NodeId id = 0; id < graph_.size(); ++id) carry(id);
    return rewrite_.finish();
  }

 private:
  void carry(NodeId id) {
    if (rewrite_.has({id, 0})) return;
    const Node& node = graph_.node(id);
    for (const ValueId input : node.inputs) carry(input.node);
    const std::optional<RowUse> use = use_of(id);
    if (!use) {
      rewrite_.copy(id);
      return;
    }
    carry(use->ids.node);
    const bool gathers = node.op == &kAllGather;
    std::vector<AttrValue> attrs = {node.attrs[0], use->groups};
    if (!gathers) attrs.emplace_back(std::string(to_text(Monoid::Sum)));
    attrs.push_back(node.attrs[node.attrs.size() - 1]);
    Node made = marked_like(node, gathers ? kDispatch : kCombine, Attrs(std::move(attrs)),
                            {node.results[0]});
    rewrite_.map({id, 0}, rewrite_.to().copy(std::move(made), {rewrite_(node.inputs[0]).id(),
                                                               rewrite_(use->ids).id()})[0]);
  }

  /// Of a gather or a sum that need not have all rows.
  std::optional<RowUse> use_of(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool gathers = node.op == &kAllGather, sums = node.op == &kReduceScatter;
    if ((!gathers && !sums) || std::get<std::int64_t>(node.attrs[1]) != 0) return std::nullopt;
    if (sums && std::get<std::string>(node.attrs[2]) != to_text(Monoid::Sum)) return std::nullopt;
    const AxisNames axes = split(std::get<std::string>(node.attrs[0]), '.');
    const ValueId all = gathers ? ValueId{id, 0} : node.inputs[0];
    const std::optional<RowUse> use = gathers ? read_by(all, axes) : made_by(all, axes);
    if (!use || !is_whole(use->ids, axes) || !has_rows(all, use->ids)) return std::nullopt;
    const Shape& ids = graph_.type(use->ids).shape;
    std::int64_t ranks = 1;
    for (const std::string& axis : axes) ranks *= graph_.mesh().size(axis);
    const ChosenRows chosen{ids.back(), use->groups, ids.numel() / ids.back()};
    const bool short_rows = graph_.type(all).bytes() / chosen.count < kLeastBytes;
    if (short_rows || mean_share(chosen, static_cast<int>(ranks)) > kMostRows) return std::nullopt;
    return use;
  }

  /// Whether the leading dims are those of ids without their last.
  bool has_rows(ValueId v, ValueId ids) const {
    const Shape &rows = graph_.type(v).shape, &of = graph_.type(ids).shape;
    if (rows.ndim() + 1 < of.ndim()) return false;
    for (int d = 0; d + 1 < of.ndim(); ++d)
      if (rows[d] != of[d]) return false;
    return true;
  }

  bool is_whole(ValueId v, const AxisNames& axes) const {
    const Sharding& sharding = graph_.result(v).placement->sharding;
    for (const std::string& axis : axes)
      if (sharding.dim_of(axis) >= 0) return false;
    return sharding.partial.empty();
  }

  bool cuts_groups(ValueId groups, const AxisNames& axes) const {
    return graph_.result(groups).placement->sharding.dims[0] == axes;
  }

  /// By which products alone rows are read; nothing where others read them.
  std::optional<RowUse> read_by(ValueId rows, const AxisNames& axes) const {
    std::optional<RowUse> out;
    for (const Output& output : graph_.outputs())
      if (output.value == rows) return std::nullopt;
    for (const NodeId id : users_(rows.node)) {
      const Node& node = graph_.node(id);
      std::optional<RowUse> use;
      if (node.op == &kGroupedMatmul && node.inputs[1] == rows && node.inputs[2] != rows &&
          cuts_groups(node.inputs[2], axes)) {
        use = RowUse{node.inputs[0], graph_.type(node.inputs[2]).shape[0]};
      } else if (node.op == &kGroupedOuter && (node.inputs.size() < 4 || node.inputs[3] != rows) &&
                 cuts_groups({id, 0}, axes)) {
        use = RowUse{node.inputs[0], node.type().shape[0]};
      } else if (node.op == &kBroadcast || node.op == &kReshape || node.op == &kCast) {
        use = read_by({id, 0}, axes);
        if (use && !has_rows({id, 0}, use->ids)) return std::nullopt;
      }
      if (!use || use->ids == rows || (out && *out != *use)) return std::nullopt;
      out = use;
    }
    return out;
  }

  /// The products of which rows are made, so that those without an id of this rank are zero.
  std::optional<RowUse> made_by(ValueId rows, const AxisNames& axes) const {
    const Node& node = graph_.node(rows.node);
    if (node.op == &kGroupedMatmul && cuts_groups(node.inputs[2], axes))
      return RowUse{node.inputs[0], graph_.type(node.inputs[2]).shape[0]};
    const auto with_rows = [&](std::optional<RowUse> use) {
      return use && has_rows(rows, use->ids) ? use : std::nullopt;
    };
    if (node.op == &kReshape || node.op == &kCast) return with_rows(made_by(node.inputs[0], axes));
    if (node.op == &kSum) {
      const std::optional<RowUse> use = with_rows(made_by(node.inputs[0], axes));
      const auto& dims = std::get<std::vector<std::int64_t>>(node.attrs[0]);
      const bool inside = use && std::ranges::all_of(dims, [&](std::int64_t d) {
                            return d >= graph_.type(use->ids).ndim() - 1;
                          });
      return inside ? use : std::nullopt;
    }
    if (node.op == &kMul) {
      for (const ValueId input : node.inputs) {
        const std::optional<RowUse> use = with_rows(made_by(input, axes));
        if (use && has_rows(input, use->ids)) return use;
      }
      return std::nullopt;
    }
    if (node.op != &kAdd && node.op != &kAddN) return std::nullopt;
    std::optional<RowUse> out;
    for (const ValueId input : node.inputs) {
      const std::optional<RowUse> one = made_by(input, axes);
      if (!one || (out && *out != *one)) return std::nullopt;
      out = one;
    }
    return out;
  }

  const Graph& graph_;
  const Users users_;
  Rewrite rewrite_;
};

bool has_groups(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == &kGroupedMatmul || node.op == &kGroupedOuter) return true;
  return false;
}

}  // namespace

Program dispatch(Program program) {
  for (Region& region : program.regions)
    if (has_groups(region.graph)) region.graph = Dispatch(region.graph).run();
  return program;
}

}  // namespace tessera
