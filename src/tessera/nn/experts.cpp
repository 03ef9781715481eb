#include "tessera/nn/experts.h"

#include "tessera/base/text.h"
#include "tessera/nn/activated.h"
#include "tessera/nn/in_f32.h"
#include "tessera/nn/transformer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/top_k.h"

// Shapes below: b batch, s sequence, d width, h hidden width, e experts, k of them that a token
// chooses.
namespace tessera {

namespace {

/// Weights of all experts, [e, out, in].
Value expert_weights(Builder& builder, std::string_view name, const Shape& shape,
                     const WeightInit& init, Where where) {
  const Scope scope(builder, name, where);
  return builder.state("weight", {DType::F32, shape, {}}, Role::Parameter, init.of(shape), where);
}

/// Means over sequences of what each says of the choices of its tokens.
void measure(Routing& out, Value logits, Value probabilities, Value ids,
             const ExpertsConfig& config) {
  const auto experts = static_cast<double>(config.experts);
  const std::int64_t s = ids.shape()[1];
  const Value counts =
                  stop_gradient(sum(one_hot(ids, config.experts, DType::F32), {1, 2})),  // [b, e]
      shares = counts / static_cast<double>(s * config.chosen),
              mean = sum(in_f32(probabilities), {1}) / static_cast<double>(s);  // [b, e]
  out.tokens.push_back(sum(counts, {0}));
  out.balance.push_back(mean_of(sum(shares * mean, {1}) * experts));
  const Value wide = in_f32(logits), largest = stop_gradient(max(wide, {2}, KeepDim::Yes)),
              normal = log(sum(exp(wide - largest), {2}, KeepDim::Yes)) + largest;  // [b, s, 1]
  out.z_loss.push_back(mean_of(normal * normal));
}

/// Of the experts that each token chose.
Value routed(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  Builder& builder = x.builder();
  const ExpertsConfig& config = layer.experts;
  const std::int64_t b = x.shape()[0], s = x.shape()[1], d = x.shape()[2], e = config.experts,
                     k = config.chosen, h = layer.ffn_width == 0 ? 4 * d : layer.ffn_width;
  const Value logits = linear(x, "router", e, {false, layer.init}, where),
              probabilities = softmax(logits, -1, where);  // [b, s, e]
  const auto [values, ids] = top_k(probabilities, k, where);
  const Value weights = config.pre_softmax ? values : values / sum(values, {2}, KeepDim::Yes);
  if (pass.routing != nullptr) measure(*pass.routing, logits, probabilities, ids, config);

  const Scope experts(builder, "experts", where);
  const auto widened = [&](std::string_view name) {
    const Value w = expert_weights(builder, name, {e, h, d}, layer.init, where);
    return grouped_matmul(ids, x, w, {.trans_w = true, .makes_rows = true}, where);  // [b, s, k, h]
  };
  const Value rows = activated(layer.feed_forward, widened) * reshape(weights, {b, s, k, 1}, where),
              down = expert_weights(builder, "down", {e, d, h}, layer.residual_init, where),
              each = grouped_matmul(ids, rows, down, {.trans_w = true, .reads_rows = true},
                                    where);  // [b, s, k, d]
  return sum(each, {2});                     // in the order of choice
}

/// What every token reads.
Value shared_expert(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  TransformerLayer one = layer;
  one.ffn_width = layer.experts.shared_width;
  one.activation_dropout = 0;
  Value y;
  {
    const Scope scope(x.builder(), "shared", where);
    y = feed_forward_of(x, one, pass, where);
  }
  if (!layer.experts.shared_gate) return y;
  return y * sigmoid(linear(x, "shared_gate", 1, {false, layer.init}, where));  // [b, s, 1]
}

}  // namespace

FieldProblems problems(const ExpertsConfig& c) {
  FieldProblems out;
  if (c.experts < 0)
    out.add({"num-experts"},
            text("num-experts is ", c.experts, "; it must be at least 1, or 0 for none"));
  if (c.experts > 0 && (c.chosen < 1 || c.chosen > c.experts))
    out.add({"moe-router-topk", "num-experts"},
            text("moe-router-topk is ", c.chosen, ", of num-experts ", c.experts,
                 "; it must be from 1 to that"));
  const auto weight = [&](const char* name, double value) {
    if (!(value >= 0)) out.add({name}, text(name, " is ", value, "; it must be at least 0"));
  };
  if (c.shared_width < 0)
    out.add({"moe-shared-expert-intermediate-size"},
            text("moe-shared-expert-intermediate-size is ", c.shared_width,
                 "; it must be at least 1, or 0 for none"));
  if (c.experts == 0 && c.shared_width > 0)
    out.add({"moe-shared-expert-intermediate-size", "num-experts"},
            text("moe-shared-expert-intermediate-size ", c.shared_width,
                 " does nothing with num-experts 0; leave it out, or give num-experts"));
  if (c.experts > 0 && c.shared_gate && c.shared_width == 0)
    out.add({"moe-shared-expert-gate", "moe-shared-expert-intermediate-size"},
            "moe-shared-expert-gate does nothing without moe-shared-expert-intermediate-size; give "
            "both, or none");
  weight("moe-aux-loss-coeff", c.balance);
  weight("moe-z-loss-coeff", c.z_loss);
  return out;
}

Value expert_feed_forward(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  const Scope scope(x.builder(), "mlp", where);
  const Value y = routed(x, layer, pass, where);
  return layer.experts.shared_width > 0 ? y + shared_expert(x, layer, pass, where) : y;
}

}  // namespace tessera
