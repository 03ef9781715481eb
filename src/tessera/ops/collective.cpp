#include "tessera/ops/collective.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tessera/ops/reference.h"

namespace tessera {

namespace {

void copy_reference(RefCall& c) {
  std::memcpy(c.outs[0].data, c.ins[0].data, static_cast<std::size_t>(c.outs[0].type.bytes()));
}

void shard_reference(RefCall& c) {
  const RefOperand &from = c.ins[0], &to = c.outs[0];
  const Shape strides = from.type.shape.strides();
  const int size = size_of(from.type.dtype);
  const auto* source = static_cast<const std::byte*>(from.data);
  auto* target = static_cast<std::byte*>(to.data);
  for_each_index(to.type.shape, [&](const Shape& at, std::int64_t i) {
    std::int64_t offset = 0;
    bool inside = true;
    for (int d = 0; d < at.ndim(); ++d) {
      const std::int64_t position = at[d] + to.offset[d] - from.offset[d];
      inside = inside && position < from.type.shape[d];
      offset += position * strides[d];
    }
    if (inside) std::copy_n(source + offset * size, size, target + i * size);
  });
}

void clear_reference(RefCall& c) {
  const RefOperand& from = c.ins[0];
  const Monoid monoid = parse_monoid(c.call.string("monoid"));
  with_element(from.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in<T>(0);
    T* y = c.out<T>(0);
    for_each_index(from.type.shape, [&](const Shape& at, std::int64_t i) {
      bool inside = true;
      for (const std::int64_t dim : c.call.integers("dims")) {
        const int d = static_cast<int>(dim);
        inside = inside && at[d] < from.valid[d];
      }
      y[i] = inside ? x[i] : identity_of<T>(monoid);
    });
  });
}

TensorTypes same_type(const OpCall& c) { return {c.in(0)}; }
TensorTypes told_shape(const OpCall& c) {
  return {{c.in(0).dtype, Shape(c.integers("shape")), {}}};
}

void mark_reference(RefCall& c) {
  if (c.coordinate == 0) return copy_reference(c);
  const Monoid monoid = parse_monoid(c.call.string("monoid"));
  with_element(c.outs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(c.out<T>(0), c.out_shape(0).numel(), identity_of<T>(monoid));
  });
}

/// What all of them have in common; where ranks exchange nothing there is a reference.
constexpr OpDef moves(std::string_view name, std::string_view doc, AttrDefs attrs,
                      TensorTypes (*infer)(const OpCall&), RefFunction reference = nullptr) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.attrs = attrs;
  op.infer = infer;
  op.factors = no_factors;
  op.reference = {reference, reference};
  op.traits.inserted = true;
  op.traits.exchanges = reference == nullptr;
  return op;
}

}  // namespace

constinit const OpDef kReshard =
    moves("reshard", "The same value, lying otherwise on the mesh.", {}, same_type, copy_reference);

constinit const OpDef kUse = moves("use", "A state as forward or backward reads it.",
                                   {{"path", AttrKind::Text}}, same_type, copy_reference);

constinit const OpDef kShard =
    moves("shard", "This rank's part of a dim of a value that is whole along mesh axes.",
          {{"axes", AttrKind::Text}, {"dim", AttrKind::Int}, kShapeOfResult}, told_shape,
          shard_reference);

constinit const OpDef kMarkPartial =
    moves("mark_partial", "The value on the first rank of an axis, the identity on the others.",
          {{"axes", AttrKind::Text}, {"monoid", AttrKind::Text}}, same_type, mark_reference);

constinit const OpDef kCopy =
    moves("copy", "The same value in another memory of its rank.", {}, same_type, copy_reference);

constinit const OpDef kAllReduce = [] {
  OpDef op = moves("all_reduce", "Combines what ranks along mesh axes hold, in rank order.",
                   {{"axes", AttrKind::Text}, {"monoid", AttrKind::Text}}, same_type);
  op.in_place[0] = {0, 0};
  return op;
}();

constinit const OpDef kAllGather =
    moves("all_gather", "Joins the shards of a dim that ranks along mesh axes hold.",
          {{"axes", AttrKind::Text}, {"dim", AttrKind::Int}, kShapeOfResult}, told_shape);

constinit const OpDef kReduceScatter = moves(
    "reduce_scatter", "Combines what ranks along mesh axes hold; each keeps its part of dim.",
    {{"axes", AttrKind::Text}, {"dim", AttrKind::Int}, {"monoid", AttrKind::Text}, kShapeOfResult},
    told_shape);

constinit const OpDef kAllToAll = moves(
    "all_to_all", "Joins dim `from` and cuts dim `to` along mesh axes.",
    {{"axes", AttrKind::Text}, {"from", AttrKind::Int}, {"to", AttrKind::Int}, kShapeOfResult},
    told_shape);

constinit const OpDef kDispatch =
    moves("dispatch",
          "Joins shards of rows, of others' those with this rank's ids; zeros in their place.",
          {{"axes", AttrKind::Text}, {"per_rank", AttrKind::Int}, kShapeOfResult}, told_shape);

constinit const OpDef kCombine =
    moves("combine", "Sums of what ranks with an id of a row hold; each keeps its part of rows.",
          {{"axes", AttrKind::Text},
           {"per_rank", AttrKind::Int},
           {"monoid", AttrKind::Text},
           kShapeOfResult},
          told_shape);

constinit const OpDef kPermute =
    moves("permute", "Each rank takes the whole shard of one other rank.",
          {{"axes", AttrKind::Text}, kShapeOfResult}, told_shape);

constinit const OpDef kClearPadding = {
    .name = "clear_padding",
    .doc = "A padded shard with a reduction's identity beyond the logical extent in `dims`.",
    .attrs = {{"dims", AttrKind::Ints}, {"monoid", AttrKind::Text}},
    .infer = same_type,
    .factors = no_factors,
    .reference = {clear_reference, clear_reference},
    .in_place = {InPlace{0, 0}},
    .traits = {.inserted = true},
};

Factors no_factors(const OpCall& c) {
  Factors out;
  const auto whole = [&](const Shape& shape) {
    Factors::Dims dims;
    for (const std::int64_t size : shape) {
      dims.push_back({static_cast<int>(out.list.size())});
      out.list.push_back({text("w", out.list.size()), size, FactorKind::Whole});
    }
    return dims;
  };
  for (int i = 0; i < c.num_in(); ++i) out.ins.push_back(whole(c.in(i).shape));
  out.outs = {whole(c.out(0).shape)};
  return out;
}

std::vector<std::int64_t> padded_dims(const Result& result, const Mesh& mesh) {
  std::vector<std::int64_t> out;
  for (int d = 0; d < result.logical.ndim(); ++d) {
    std::int64_t stored = result.type.shape[d];
    for (const std::string& axis : result.placement->sharding.dims[static_cast<std::size_t>(d)])
      stored *= mesh.size(axis);
    if (stored != result.logical[d]) out.push_back(d);
  }
  return out;
}

std::optional<Monoid> reduction_of_padding(const OpDef& op, const Factors& rule, int operand,
                                           const std::vector<std::int64_t>& padded) {
  if (op.any_padding == operand) return std::nullopt;
  std::optional<Monoid> out;
  for (const std::int64_t d : padded) {
    for (const int f : rule.ins[static_cast<std::size_t>(operand)][static_cast<std::size_t>(d)]) {
      for (int r = 0; r < static_cast<int>(rule.outs.size()); ++r) {
        if (!rule.reduces(f, r)) continue;
        const Monoid monoid = combining(rule.monoid(f));
        check(!out || *out == monoid, op.name, " reduces operand ", operand, " by ", to_text(*out),
              " and by ", to_text(monoid), ": its padding cannot be the identity of both");
        out = monoid;
      }
    }
  }
  return out;
}

}  // namespace tessera
