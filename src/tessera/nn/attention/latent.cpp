#include "tessera/nn/attention/latent.h"

#include "tessera/base/text.h"
#include "tessera/nn/attention/attended.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr double kLatentNormEps = 1e-6;  // whatever that of the layer's norms

/// [b, s, h, e] -> e as wide as `width`, with zeros.
Value widened_to(Value x, std::int64_t width, Where where) {
  return x.shape().back() == width ? x : pad(x, 3, 0, width, where);
}

}  // namespace

FieldProblems problems(const LatentConfig& c) {
  FieldProblems out;
  if (c.value_width > c.rotary_width + c.plain_width)
    out.add(
        {"v-head-dim", "qk-head-dim", "qk-pos-emb-head-dim"},
        text("v-head-dim ", c.value_width, " is more than qk-head-dim ", c.plain_width,
             " + qk-pos-emb-head-dim ", c.rotary_width, "; values are at most as wide as keys"));
  if (c.rotary_width % 2 != 0)
    out.add({"qk-pos-emb-head-dim"},
            text("qk-pos-emb-head-dim is ", c.rotary_width,
                 "; positions turn pairs of channels: give an even number"));
  return out;
}

Value latent_attention(Value x, const TransformerLayer& layer, const Visible& visible,
                       const Pass& pass, Where where) {
  const LatentConfig& c = layer.latent;
  const std::int64_t b = x.shape()[0], s = x.shape()[1], h = layer.heads,
                     e = c.rotary_width + c.plain_width;
  const auto linear_of = [&](Value from, std::string_view name, std::int64_t out) {
    return layer_linear(from, name, out, of_attention(layer), layer, pass, where);
  };
  const auto normed = [&](Value from, std::string_view name) {
    return rms_norm_layer(from, name, kLatentNormEps, RmsWeight::Whole, where);
  };
  Value q = x;
  if (c.query_rank > 0) q = normed(linear_of(x, "q_a", c.query_rank), "q_a_norm");
  q = reshape(linear_of(q, c.query_rank > 0 ? "q_b" : "q", h * e), {b, s, h, 1, e});
  q.builder().set_name(q, "q_heads");
  const Value of_token = linear_of(x, "kv_a", c.kv_rank + c.rotary_width),
              shared = reshape(slice(of_token, 2, 0, c.rotary_width), {b, s, 1, c.rotary_width});
  const std::int64_t of_head = c.plain_width + c.value_width;
  const Value heads =
      reshape(linear_of(normed(slice(of_token, 2, c.rotary_width, c.kv_rank), "kv_a_norm"), "kv_b",
                        h * of_head),
              {b, s, h, 1, of_head});
  heads.builder().set_name(heads, "kv_heads");
  const auto part = [&](std::int64_t first, std::int64_t width) {
    return reshape(slice(heads, 4, first, width), {b, s, h, width});
  };
  const Value positions = run_positions(x, pass, where);
  const RotaryRates rates =
      rotary_rates(layer.rope, c.rotary_width, pass.position.valid() ? pass.context : s);
  const Value turned = rope(shared, positions, rates, false, where);
  const Value k = concat({broadcast_to(turned, {b, s, h, c.rotary_width}), part(0, c.plain_width)},
                         3, where),
              v = widened_to(part(c.plain_width, c.value_width), e, where);
  return attended_so_far(rope(q, positions, rates, false, where), k, v, x.shape().back(), layer,
                         visible, pass, where);
}

}  // namespace tessera
