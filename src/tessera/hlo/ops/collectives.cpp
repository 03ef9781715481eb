/// What ranks do together, and parts of what a rank holds. Shards are ceil-sized: what is sent is
/// padded to that before, and cut behind.

#include "tessera/ops/collective.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/hlo/op_call.h"

namespace tessera::hlo {

namespace {

using Rows = std::vector<std::vector<std::int64_t>>;

std::vector<std::string> axes_of_op(const Writing& w) { return split(w.call.string("axes"), '.'); }

/// dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
std::string dense_rows(const Rows& rows) {
  std::string out;
  for (const auto& row : rows) out += text(out.empty() ? "" : ", ", list_text(row));
  return text("dense<[", out, "]> : tensor<", rows.size(), "x", rows[0].size(), "xi64>");
}

/// The ranks that differ along the op's axes alone, the first axis outermost.
Rows groups_of(const Writing& w) {
  Rows out;
  for (std::int64_t rank = 0; rank < w.e.mesh.ranks(); ++rank) {
    const std::vector<std::int64_t> group = ranks_along(w.e.mesh, axes_of_op(w), rank);
    if (std::ranges::find(out, group) == out.end()) out.push_back(group);
  }
  return out;
}

std::string replica_groups(const Writing& w) {
  return text("replica_groups = ", dense_rows(groups_of(w)));
}

std::int64_t group_size(const Writing& w) {
  return static_cast<std::int64_t>(groups_of(w)[0].size());
}

Value padded(const Writing& w, int dim, std::int64_t size) {
  return w.code.pad(w.in(0), dim, 0, size - w.in(0).shape()[dim]);
}

Monoid monoid_of(const Writing& w) { return parse_monoid(w.call.string("monoid")); }

void write_all_reduce(Writing& w) {
  w.out(w.code.collective("all_reduce", w.in(0), replica_groups(w), w.in(0).shape(), monoid_of(w)));
}

/// Of dispatch and combine, too, which act on dim 0: XLA sends all rows, those that nobody reads, and
/// those that are zero, included.
int dim_of(const Writing& w) { return w.call.op().attrs.find("dim") < 0 ? 0 : w.dim(); }

void write_all_gather(Writing& w) {
  const int dim = dim_of(w);
  Shape shape = w.in(0).shape();
  shape[dim] *= group_size(w);
  const Value all = w.code.collective(
      "all_gather", w.in(0), text("all_gather_dim = ", dim, " : i64, ", replica_groups(w)), shape);
  w.out(w.code.slice(all, dim, 0, w.result(0).type.shape[dim]));
}

void write_reduce_scatter(Writing& w) {
  const int dim = dim_of(w);
  const Shape& to = w.result(0).type.shape;
  const Value x = padded(w, dim, to[dim] * group_size(w));
  w.out(w.code.collective("reduce_scatter", x,
                          text("scatter_dimension = ", dim, " : i64, ", replica_groups(w)), to,
                          monoid_of(w)));
}

void write_all_to_all(Writing& w) {
  const int joined = w.dim("from"), cut = w.dim("to");
  const std::int64_t n = group_size(w);
  const Shape& to = w.result(0).type.shape;
  const Value x = padded(w, cut, to[cut] * n);
  Shape shape = x.shape();
  shape[joined] *= n;
  shape[cut] /= n;
  const std::string attributes =
      text("split_dimension = ", cut, " : i64, concat_dimension = ", joined,
           " : i64, split_count = ", n, " : i64, ", replica_groups(w));
  const Value all = w.code.collective("all_to_all", x, attributes, shape);
  w.out(w.code.slice(all, joined, 0, to[joined]));
}

void write_permute(Writing& w) {
  const std::vector<std::string> axes = axes_of_op(w);
  const Sharding &from = w.operand(0).placement->sharding, &to = w.result(0).placement->sharding;
  Rows pairs;
  for (const auto& group : groups_of(w)) {
    for (const std::int64_t receiver : group) {
      const auto gives = [&](std::int64_t sender) {
        return permutes(from, coordinates_of(w.e.mesh, sender), to,
                        coordinates_of(w.e.mesh, receiver), axes, w.e.mesh);
      };
      const auto sender = std::ranges::find_if(group, gives);
      check(sender != group.end(), "permute: nobody has what rank ", receiver, " wants");
      pairs.push_back({*sender, receiver});
    }
  }
  w.out(w.code.collective("collective_permute", w.in(0),
                          text("source_target_pairs = ", dense_rows(pairs)), w.in(0).shape()));
}

/// This rank's, or this micro-batch's, part of a dim. What lies beyond the operand is undefined.
void write_shard(Writing& w) {
  const Result &from = w.operand(0), &to = w.result(0);
  const int dim = w.dim();
  const std::int64_t n = to.type.shape[dim], had = from.type.shape[dim];
  const auto start_in = [&](const Result& whole, const Coordinates& where) {
    return extent(whole.logical[dim], whole.placement->sharding.dims[at(dim)], w.e.mesh, where)
        .start;
  };
  const Value start = w.e.by_rank([&](const Coordinates& where) -> std::int64_t {
    return start_in(to, where) - start_in(from, where);
  });
  const Value x = n == 0 ? w.in(0) : padded(w, dim, (had + n - 1) / n * n);
  w.out(w.code.dynamic_slice(x, dim, start, to.type.shape));
}

void write_mark_partial(Writing& w) {
  const Value first = w.e.by_rank([&](const Coordinates& where) -> std::int64_t {
    return std::ranges::all_of(axes_of_op(w), [&](const std::string& axis) {
      return coordinate(w.e.mesh, where, axis) == 0;
    });
  });
  w.out(w.code.select(eq(first, 1.0), w.in(0), w.code.identity(monoid_of(w), w.in(0).element())));
}

void write_clear_padding(Writing& w) {
  const Value& x = w.in(0);
  std::optional<Value> inside;
  for (const std::int64_t d : w.call.integers("dims")) {
    const int dim = static_cast<int>(d);
    const Value here = w.code.iota(x.shape(), dim, Element::I64) < w.e.valid(w.operand(0), dim);
    inside = inside ? *inside & here : here;
  }
  if (!inside) return w.out(x);
  w.out(w.code.select(*inside, x, w.code.identity(monoid_of(w), x.element())));
}

/// To the other memory, where the plugin has one.
void write_copy(Writing& w) {
  if (!w.e.options.pinned_host) return w.out(w.in(0));
  const bool host = memory_of(w.result(0)) == Memory::Host;
  const Type& type = w.in(0).type();
  w.out(w.code.line(
      text("stablehlo.custom_call @annotate_device_placement(", w.in(0),
           ") {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = \"",
           host ? "pinned_host" : "device", "\"}} : (", type, ") -> ", type),
      type));
}

constinit const Emission kCollectives[] = {
    {&kAllReduce, write_all_reduce},
    {&kAllGather, write_all_gather},
    {&kReduceScatter, write_reduce_scatter},
    {&kDispatch, write_all_gather},
    {&kCombine, write_reduce_scatter},
    {&kAllToAll, write_all_to_all},
    {&kPermute, write_permute},
    {&kShard, write_shard},
    {&kMarkPartial, write_mark_partial},
    {&kClearPadding, write_clear_padding},
    {&kCopy, write_copy},
};

}  // namespace

std::span<const Emission> collective_emissions() { return kCollectives; }

}  // namespace tessera::hlo
