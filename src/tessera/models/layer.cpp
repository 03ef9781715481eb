#include "tessera/models/layer.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tessera/base/size.h"
#include "tessera/models/expert_layers.h"
#include "tessera/models/family.h"
#include "tessera/models/rope_scaling.h"

namespace tessera {

namespace {

struct Activation {
  std::string_view name;
  FeedForward of;
};
constexpr Activation kActivations[] = {
    {"gelu", FeedForward::GeluErf},  {"gelu_new", FeedForward::GeluTanh},
    {"relu", FeedForward::Relu},     {"silu", FeedForward::Silu},
    {"swish", FeedForward::Silu},    {"gated-gelu", FeedForward::GeGlu},
    {"swiglu", FeedForward::SwiGlu},
};

/// Of one that a family does not know, which is told as a problem, the first.
FeedForward feed_forward_of(std::string_view activation) {
  const auto found = std::ranges::find(kActivations, activation, &Activation::name);
  return found == std::end(kActivations) ? kActivations[0].of : found->of;
}

/// Of scores: what yarn multiplies cosine and sine by, once of queries and once of keys, for all
/// channels, those that do not turn included. Source: transformers' DeepSeek-V3.
double latent_scale(const LatentConfig& latent, const RotaryScaling& scaling) {
  const double stretch = scaling.mscale_all_dim == 0 || scaling.factor <= 1
                             ? 1
                             : 0.1 * scaling.mscale_all_dim * std::log(scaling.factor) + 1;
  return stretch * stretch /
         std::sqrt(static_cast<double>(latent.rotary_width + latent.plain_width));
}

}  // namespace

WeightInit init_of(const ModelConfig& config) { return normal_init(config.init_std); }

TransformerLayer layer_of(const ModelConfig& config) {
  TransformerLayer out = config.family->layer;
  const auto reads = [&](std::string_view field) { return reads_field(config, field); };
  const bool attention_bias = config.attention_bias && reads("attention-bias");
  out.heads = config.heads;
  if (reads("kv-heads")) out.kv_heads = config.kv_heads;
  if (reads("head-width")) out.head_width = config.head_width;
  if (reads("ffn-width")) out.ffn_width = config.hidden();
  if (reads("norm-eps")) out.norm_eps = config.norm_eps;
  out.bias = out.bias && (config.bias || !reads("bias"));
  out.qkv_bias = attention_bias || out.qkv_bias;
  out.proj_bias = attention_bias || out.proj_bias;
  out.ffn_bias = (config.ffn_bias && reads("ffn-bias")) || out.ffn_bias;
  if (reads("activation")) out.feed_forward = feed_forward_of(config.activation);
  if (reads("layer-scale")) out.layer_scale = config.layer_scale;
  if (out.rotary) out.rope = rotary_of(config);
  if (config.query_scalar > 0 && reads("query-scalar"))
    out.attention_scale = 1 / std::sqrt(static_cast<double>(config.query_scalar));
  if (reads("one-norm")) out.one_norm = config.one_norm;
  if (reads("score-cap")) out.attention_cap = config.score_cap;
  if (reads("kv-lora-rank")) {
    out.latent = config.latent;
    out.attention_scale = latent_scale(config.latent, out.rope.scaling);
  }
  out.attention_dropout = config.attention_rate();
  out.hidden_dropout = config.dropout;
  out.init = out.residual_init = init_of(config);
  out.lora = config.lora;
  if (has_experts(config)) out.experts = config.experts;
  return out;
}

void find_activation_problems(const ModelConfig& config, std::span<const std::string_view> known,
                              FieldProblems& problems) {
  if (std::ranges::find(known, config.activation) == known.end())
    problems.add({"activation"}, text("activation is '", config.activation, "'; of family ",
                                      config.family, " it can be ", join(known)));
}

void find_held_score_problems(const ModelConfig& config, FieldProblems& problems) {
  const std::int64_t longest =
      std::clamp<std::int64_t>(std::max(config.context, config.source()), 1, kMaxContext);
  if (config.heads <= kMaxFieldSize && !size_product_fits(longest * longest, 4 * config.heads))
    problems.add({"context", "source-context", "heads"},
                 text("scores of attention, which are held whole, are ", config.heads, " heads x ",
                      longest, " x ", longest, " x 4 bytes; give a smaller context"));
}

bool has_experts(const ModelConfig& c) {
  return c.experts.experts > 0 && reads_field(c, "num-experts");
}

bool has_experts(const ModelConfig& c, std::int64_t i) {
  return has_experts(c) && ExpertLayers(c.expert_layers).has(i);
}

bool has_window(const ModelConfig& c, std::int64_t i) {
  if (c.window == 0 || !reads_field(c, "window")) return false;
  if (c.global_every == 0 || !reads_field(c, "global-every")) return true;
  return (i + (c.family->first_sees_all ? 0 : 1)) % c.global_every != 0;
}

TransformerLayer layer_at(TransformerLayer layer, const ModelConfig& c, std::int64_t i) {
  if (!has_experts(c, i)) layer.experts = {};
  if (!has_window(c, i)) return layer;
  if (c.window < c.context) layer.window = c.window;
  if (c.local_rope_base > 0 && reads_field(c, "local-rope-base"))
    layer.rope = {.base = c.local_rope_base};
  return layer;
}

}  // namespace tessera
