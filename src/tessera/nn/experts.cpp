#include "tessera/nn/experts.h"

#include "tessera/base/text.h"
#include "tessera/nn/activated.h"
#include "tessera/nn/router.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

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

/// A number for each result of each expert, [e, out], of those that tokens chose: [b, s, k, out].
Value expert_bias(Value ids, std::string_view name, std::int64_t experts, std::int64_t out,
                  Where where) {
  Builder& builder = ids.builder();
  const Scope scope(builder, name, where);
  const Shape shape{experts, out};
  return gather(ids,
                builder.state("bias", {DType::F32, shape, {}}, Role::Parameter,
                              zeros_init().of(shape), where),
                where);
}

std::int64_t width_of_experts(const TransformerLayer& layer, std::int64_t d) {
  if (layer.experts.width > 0) return layer.experts.width;
  return layer.ffn_width == 0 ? 4 * d : layer.ffn_width;
}

/// Of the experts that each token chose.
Value routed(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  Builder& builder = x.builder();
  const ExpertsConfig& config = layer.experts;
  const std::int64_t b = x.shape()[0], s = x.shape()[1], d = x.shape()[2], e = config.experts,
                     k = config.chosen, h = width_of_experts(layer, d);
  const auto [ids, weights] = route(x, layer, pass, where);  // [b, s, k]

  const Scope experts(builder, "experts", where);
  const bool biased = layer.bias || layer.ffn_bias;
  const Value share = reshape(weights, {b, s, k, 1}, where);
  const auto widened = [&](std::string_view name) {
    const Value w = expert_weights(builder, name, {e, h, d}, layer.init, where),
                y = grouped_matmul(ids, x, w, {.trans_w = true, .makes_rows = true}, where);
    return biased ? y + expert_bias(ids, name, e, h, where) : y;  // [b, s, k, h]
  };
  const Value rows = activated(layer.feed_forward, widened) * share,
              down = expert_weights(builder, "down", {e, d, h}, layer.residual_init, where);
  Value each = grouped_matmul(ids, rows, down, {.trans_w = true, .reads_rows = true},
                              where);  // [b, s, k, d]
  if (biased) each = each + expert_bias(ids, "down", e, d, where) * share;
  return sum(each, {2});  // in the order of choice
}

/// A feed-forward part that every token reads, of hidden width `width`.
Value beside(Value x, std::string_view name, std::int64_t width, const TransformerLayer& layer,
             const Pass& pass, Where where) {
  TransformerLayer one = layer;
  one.ffn_width = width;
  one.activation_dropout = 0;
  const Scope scope(x.builder(), name, where);
  return feed_forward_of(x, one, pass, where);
}

Value shared_expert(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  const Value y = beside(x, "shared", layer.experts.shared_width, layer, pass, where);
  if (!layer.experts.shared_gate) return y;
  return y * sigmoid(linear(x, "shared_gate", 1, {false, layer.init}, where));  // [b, s, 1]
}

/// Source: Rajbhandari et al. 2022, DeepSpeed-MoE, arXiv 2201.05596, section 4.1; the weights of the
/// sum as DeepSpeed has them.
Value with_residual(Value y, Value x, const TransformerLayer& layer, const Pass& pass,
                    Where where) {
  const Value fixed = beside(x, "residual", width_of_experts(layer, x.shape().back()), layer, pass,
                             where),
              share = softmax(linear(x, "coefficient", 2, {true, layer.init}, where), -1, where);
  return y * slice(share, 2, 0, 1, where) + fixed * slice(share, 2, 1, 1, where);
}

void find_group_problems(const ExpertsConfig& c, FieldProblems& out) {
  if (c.groups == 0 && c.chosen_groups == 0) return;
  const auto add = [&](const std::string& words) {
    out.add({"moe-router-num-groups", "moe-router-group-topk", "num-experts", "moe-router-topk"},
            words);
  };
  if (c.groups == 0)
    return add(
        "moe-router-group-topk does nothing without moe-router-num-groups; give both, or "
        "none");
  if (c.groups < 1 || c.experts % c.groups != 0)
    return add(text("moe-router-num-groups is ", c.groups, ", which does not divide num-experts ",
                    c.experts, "; give a divisor of that"));
  if (c.chosen_groups < 1 || c.chosen_groups > c.groups)
    return add(text("moe-router-group-topk is ", c.chosen_groups, ", of moe-router-num-groups ",
                    c.groups, "; it must be from 1 to that"));
  const std::int64_t each = c.experts / c.groups;
  if (c.chosen % c.chosen_groups != 0 || c.chosen / c.chosen_groups > each)
    add(text("moe-router-topk ", c.chosen, " is not shared by moe-router-group-topk ",
             c.chosen_groups, " groups of ", each, " experts; give a multiple of ", c.chosen_groups,
             " up to ", c.chosen_groups * each));
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
  if (c.width < 0)
    out.add({"moe-ffn-hidden-size"}, text("moe-ffn-hidden-size is ", c.width,
                                          "; it must be at least 1, or 0 for ffn-width"));
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
  weight("moe-router-bias-update-rate", c.bias_rate);
  weight("moe-expert-capacity-factor", c.capacity);
  weight("moe-min-capacity", static_cast<double>(c.least_capacity));
  if (!(c.scale > 0))
    out.add({"moe-router-topk-scaling-factor"},
            text("moe-router-topk-scaling-factor is ", c.scale, "; it must be more than 0"));
  if (!(c.jitter >= 0 && c.jitter < 1))
    out.add({"moe-input-jitter-eps"},
            text("moe-input-jitter-eps is ", c.jitter, "; it must be at least 0 and less than 1"));
  if (c.samples < 1)
    out.add({"moe-aux-loss-samples"},
            text("moe-aux-loss-samples is ", c.samples, "; it must be at least 1"));
  if (c.bias && c.score != RouterScore::Sigmoid)
    out.add({"moe-router-enable-expert-bias", "moe-router-score-function"},
            "moe-router-enable-expert-bias adds to scores that stand by themselves; give "
            "moe-router-score-function sigmoid");
  const ExpertsConfig standard;
  if (c.bias_rate != standard.bias_rate && !c.bias)
    out.add({"moe-router-bias-update-rate", "moe-router-enable-expert-bias"},
            "moe-router-bias-update-rate does nothing without moe-router-enable-expert-bias; give "
            "both, or none");
  if (c.least_capacity > 0 && c.capacity == 0)
    out.add({"moe-min-capacity", "moe-expert-capacity-factor"},
            "moe-min-capacity does nothing without moe-expert-capacity-factor; give both, or none");
  if (c.drop != standard.drop && c.capacity == 0)
    out.add({"moe-token-drop-policy", "moe-expert-capacity-factor"},
            "moe-token-drop-policy does nothing without moe-expert-capacity-factor; give both, or "
            "none");
  if (c.experts > 0) find_group_problems(c, out);
  return out;
}

Value expert_feed_forward(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  const Scope scope(x.builder(), "mlp", where);
  Value y = routed(x, layer, pass, where);
  if (layer.experts.residual) y = with_residual(y, x, layer, pass, where);
  return layer.experts.shared_width > 0 ? y + shared_expert(x, layer, pass, where) : y;
}

}  // namespace tessera
