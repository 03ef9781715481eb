#include "tessera/passes/moves.h"

#include <algorithm>

#include "tessera/ops/collective.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

using Names = std::vector<std::string>;

class Moves {
 public:
  Moves(Builder& builder, Value value, const Node& like)
      : builder_(builder), mesh_(builder.so_far().mesh()), like_(like), value_(value) {}

  void apply(const Move& move);
  /// The value with these logical dims, on which it lies as `after` says.
  void view(const Shape& logical, Sharding after);
  void copy(Memory to);
  Value value() const { return value_; }

 private:
  const Result& here() const { return builder_.so_far().result(value_.id()); }
  const Sharding& sharding() const { return here().placement->sharding; }

  /// True where the axes cut the dim of this extent into chunks of one size.
  bool even(std::int64_t extent, const Names& axes) const {
    std::int64_t n = 1;
    for (const std::string& axis : axes) n *= mesh_.size(axis);
    return axes.size() < 2 || extent % n == 0;
  }

  void gather(const Names& axes, int dim);
  void scatter(const Names& axes, int dim);
  void reduce(const Names& axes);
  void shard(const Names& axes, int dim);
  void add(const OpDef& op, Sharding after, std::vector<AttrValue> attrs) {
    add(op, here().logical, std::move(after), std::move(attrs));
  }
  void add(const OpDef& op, const Shape& logical, Sharding after, std::vector<AttrValue> attrs) {
    add(op, logical, Placement{std::move(after), here().placement->memory}, std::move(attrs));
  }
  void add(const OpDef& op, const Shape& logical, Placement after, std::vector<AttrValue> attrs);

  Builder& builder_;
  const Mesh& mesh_;
  const Node& like_;
  Value value_;
};

Names one(const std::string& axis) { return {axis}; }

Sharding moved(Sharding sharding, const Names& axes, int to) {
  for (const std::string& axis : axes) sharding = sharding.without(axis);
  for (const std::string& axis : axes) {
    if (to >= 0) sharding = sharding.with(axis, to);
  }
  return sharding;
}

/// `attrs` end with the result's shape where the op declares one.
void Moves::add(const OpDef& op, const Shape& logical, Placement after,
                std::vector<AttrValue> attrs) {
  Result result = here();
  result.logical = logical;
  result.type.shape = local_shape(logical, after.sharding, mesh_);
  result.placement = std::move(after);
  const Shape& shape = result.type.shape;
  if (op.attrs.shape_of_result() >= 0)
    attrs.emplace_back(std::vector<std::int64_t>(shape.begin(), shape.end()));
  Node node = marked_like(like_, op, Attrs(std::move(attrs)), {std::move(result)});
  value_ = builder_.copy(std::move(node), {value_.id()})[0];
}

void Moves::gather(const Names& axes, int dim) {
  const Sharding after = moved(sharding(), axes, -1);
  if (even(local_shape(here().logical, after, mesh_)[dim], axes))
    return add(kAllGather, after, {join(axes, "."), std::int64_t{dim}});
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    add(kAllGather, sharding().without(*axis), {*axis, std::int64_t{dim}});
}

void Moves::reduce(const Names& axes) {
  add(kAllReduce, moved(sharding(), axes, -1),
      {join(axes, "."), std::string(to_text(combining(sharding().partial[0].monoid)))});
}

void Moves::scatter(const Names& axes, int dim) {
  const std::string monoid = std::string(to_text(combining(sharding().partial[0].monoid)));
  if (even(here().type.shape[dim], axes))
    return add(kReduceScatter, moved(sharding(), axes, dim),
               {join(axes, "."), std::int64_t{dim}, monoid});
  for (const std::string& axis : axes)
    add(kReduceScatter, moved(sharding(), one(axis), dim), {axis, std::int64_t{dim}, monoid});
}

void Moves::shard(const Names& axes, int dim) {
  add(kShard, moved(sharding(), axes, dim), {join(axes, "."), std::int64_t{dim}});
}

void Moves::view(const Shape& logical, Sharding after) {
  add(kReshape, logical, std::move(after), {});
}

void Moves::copy(Memory to) {
  if (here().placement->memory != to) add(kCopy, here().logical, Placement{sharding(), to}, {});
}

void Moves::apply(const Move& move) {
  switch (move.kind) {
    case MoveKind::Slice: return shard(move.axes, move.to);
    case MoveKind::MarkPartial:
      for (const Partial& p : move.after.partial) {
        if (std::find(move.axes.begin(), move.axes.end(), p.axis) != move.axes.end())
          add(kMarkPartial, sharding().with_partial(p.axis, p.monoid),
              {p.axis, std::string(to_text(p.monoid))});
      }
      return;
    case MoveKind::AllGather: return gather(move.axes, move.from);
    case MoveKind::ReduceScatter: return scatter(move.axes, move.to);
    case MoveKind::AllReduce: return reduce(move.axes);
    case MoveKind::AllToAll: {
      const Shape joined = local_shape(here().logical, moved(sharding(), move.axes, -1), mesh_);
      if (even(joined[move.from], move.axes) && even(joined[move.to], move.axes))
        return add(kAllToAll, move.after,
                   {join(move.axes, "."), std::int64_t{move.from}, std::int64_t{move.to}});
      gather(move.axes, move.from);
      return shard(move.axes, move.to);
    }
    case MoveKind::Permute: return add(kPermute, move.after, {join(move.axes, ".")});
  }
}

}  // namespace

Value add_moves(Builder& builder, Value value, const Redistribution& plan, const Sharding& to,
                const Node& like) {
  Moves out(builder, value, like);
  const Shape whole = builder.so_far().result(value.id()).logical;
  const bool viewed = plan.view && !(plan.view->shape == whole);
  if (viewed) out.view(plan.view->shape, plan.view->from);
  for (const Move& move : plan.moves) {
    out.apply(move);
    check(builder.so_far().result(out.value().id()).placement->sharding == move.after, "move ",
          move, " leads to ", builder.so_far().result(out.value().id()).placement->sharding);
  }
  if (viewed) out.view(whole, to);
  return out.value();
}

Value add_copy(Builder& builder, Value value, Memory to, const Node& like) {
  Moves out(builder, value, like);
  out.copy(to);
  return out.value();
}

}  // namespace tessera
