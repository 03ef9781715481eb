#include "tessera/nn/attention/attended.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

// Shapes below: as in attended.h.
namespace tessera {

namespace {

/// The caches of cross attention.
struct CrossCaches {
  Value keys, values, seen;
};

CrossCaches cross_caches(Builder& builder, std::int64_t b, std::int64_t t, const Heads& heads,
                         DType dtype, Where where) {
  const auto cache = [&](std::string_view name, const TensorType& type) {
    return builder.state(name, type, Role::Cache, {Init::Kind::Constant, 0}, where);
  };
  const TensorType rows{dtype, {b, t, heads.groups, heads.width}, {}};
  return {cache("keys", rows), cache("values", rows), cache("seen", {DType::I32, {b, t}, {}})};
}

}  // namespace

Value cross_attention(Value x, const Encoded& encoded, const TransformerLayer& layer,
                      const Pass& pass, Where where) {
  const Scope scope(x.builder(), "cross", where);
  const std::int64_t b = x.shape()[0], s = x.shape()[1], d = x.shape().back();
  const Heads heads = heads_of(d, layer, where);
  const auto [g, r, e] = heads;
  const Value q = reshape(layer_linear(x, "q", g * r * e, of_attention(layer), layer, pass, where),
                          {b, s, g, r, e});
  q.builder().set_name(q, "q_heads");
  if (encoded.kept == 0) {
    const auto [k, v] =
        encoded_keys(encoded.values, heads, layer, pass, where);  // [b, t, g, e] each
    return attended(q, k, v, d, layer, encoded.visible, 0, pass, where);
  }
  const CrossCaches kept = cross_caches(x.builder(), b, encoded.kept, heads, x.dtype(), where);
  const Value zero = x.builder().constant(0, DType::I32, where);
  return attended(q, kept.keys, kept.values, d, layer, {.mask = not_equal(kept.seen, zero)}, 0,
                  pass, where);
}

void keep_encoded(const Encoded& encoded, std::int64_t width, const TransformerLayer& layer,
                  Where where) {
  Builder& builder = encoded.values.builder();
  const Scope scope(builder, "cross", where);
  const Heads heads = heads_of(width, layer, where);
  const std::int64_t b = encoded.values.shape()[0], t = encoded.values.shape()[1];
  const auto [k, v] = encoded_keys(encoded.values, heads, layer, {}, where);  // [b, t, g, e] each
  const CrossCaches kept = cross_caches(builder, b, t, heads, encoded.values.dtype(), where);
  builder.next(kept.keys, k);
  builder.next(kept.values, v);
  const Value mask = encoded.visible.mask;
  require(!mask.valid() || mask.shape() == Shape{b, t}, "caches of what an encoder made, at ",
          where.file, ":", where.line, ": the mask is ", mask.valid() ? mask.type() : TensorType{},
          "; it must be [", b, ",", t, "], as one mask of all queries is kept");
  // Written into the old value, so that it is computed where the cache lies: a mask alone depends
  // on no parameter, and belongs to no stage.
  const Value one = builder.constant(1, DType::I32, where);
  const Value seen = mask.valid() ? cast(mask, DType::I32) : broadcast_to(one, {b, t});  // [b, t]
  builder.next(kept.seen,
               dynamic_update(kept.seen, seen, 1, builder.constant(0, DType::I32), where));
}

}  // namespace tessera
