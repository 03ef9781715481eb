#include "tessera/c_api/layer_words.h"

#include <array>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 7> kFeedForwardWords = {
    "relu", "silu", "gelu_erf", "gelu_tanh", "swiglu", "geglu", "geglu_erf"};
constexpr std::array<std::string_view, 3> kNormWords = {"layer", "rms", "rms_plus_one"};
constexpr std::array<std::string_view, 6> kRotaryWords = {"default", "linear", "dynamic",
                                                          "llama3",  "yarn",   "longrope"};

RotaryScaling scaling_of(CallFields fields) {
  RotaryScaling out;
  fields.get_word("kind", kRotaryWords, out.kind);
  fields.get("factor", out.factor);
  fields.get("original_length", out.original_length);
  fields.get("low_freq_factor", out.low_freq_factor);
  fields.get("high_freq_factor", out.high_freq_factor);
  fields.get("beta_fast", out.beta_fast);
  fields.get("beta_slow", out.beta_slow);
  fields.get("truncate", out.truncate);
  fields.get("mscale", out.mscale);
  fields.get("mscale_all_dim", out.mscale_all_dim);
  fields.get("attention_factor", out.attention_factor);
  fields.get("short_factor", out.short_factor);
  fields.get("long_factor", out.long_factor);
  fields.finish();
  return out;
}

Rotary rotary_of(CallFields fields) {
  Rotary out;
  fields.get("base", out.base);
  fields.get("share", out.share);
  out.scaling = scaling_of(fields.part("scaling"));
  fields.finish();
  return out;
}

}  // namespace

TransformerLayer layer_of(CallFields fields) {
  TransformerLayer out;
  fields.get("heads", out.heads);
  fields.get("kv_heads", out.kv_heads);
  fields.get("head_width", out.head_width);
  fields.get("attention_scale", out.attention_scale);
  fields.get("attention_cap", out.attention_cap);
  fields.get("window", out.window);
  fields.get("ffn_width", out.ffn_width);
  fields.get_word("feed_forward", kFeedForwardWords, out.feed_forward);
  fields.get_word("norm", kNormWords, out.norm);
  fields.get("norm_eps", out.norm_eps);
  fields.get("post_norm", out.post_norm);
  fields.get("bare", out.bare);
  fields.get("norm_out", out.norm_out);
  fields.get("layer_scale", out.layer_scale);
  fields.get("parallel", out.parallel);
  fields.get("one_norm", out.one_norm);
  fields.get("bias", out.bias);
  fields.get("qkv_bias", out.qkv_bias);
  fields.get("proj_bias", out.proj_bias);
  fields.get("ffn_bias", out.ffn_bias);
  fields.get("norm_bias", out.norm_bias);
  fields.get("head_norm", out.head_norm);
  fields.get("rotary", out.rotary);
  out.rope = rotary_of(fields.part("rope"));
  fields.get("attention_dropout", out.attention_dropout);
  fields.get("hidden_dropout", out.hidden_dropout);
  fields.get("activation_dropout", out.activation_dropout);
  fields.get("init", out.init);
  fields.get("attention_init", out.attention_init);
  fields.get("residual_init", out.residual_init);
  fields.finish();
  require(out.heads >= 1, fields.what(), ": heads is ", out.heads, "; give at least 1");
  require(out.kv_heads >= 0 && out.heads % std::max<std::int64_t>(out.kv_heads, 1) == 0,
          fields.what(), ": kv_heads is ", out.kv_heads, " with ", out.heads,
          " heads; give one of its divisors, or 0 for as many as heads");
  require(out.ffn_width >= 0 && out.head_width >= 0, fields.what(), ": ffn_width is ",
          out.ffn_width, " and head_width ", out.head_width, "; give 0 or more");
  return out;
}

Visible visible_of(CallFields fields) {
  Visible out;
  fields.get("causal", out.causal);
  fields.get("mask", out.mask);
  fields.get("bias", out.bias);
  CallFields distances = fields.part("distances");
  distances.get("rows", out.distances.rows);
  distances.get("kinds", out.distances.kinds);
  distances.finish();
  fields.get("slopes", out.slopes);
  fields.finish();
  return out;
}

Pass pass_of(CallFields fields) {
  Pass out;
  fields.get("step", out.step);
  fields.get("position", out.position);
  fields.get("room", out.room);
  fields.get("context", out.context);
  fields.get("positions", out.positions);
  fields.get("first_seen", out.first_seen);
  fields.get("mask", out.mask);
  fields.get("wanted", out.wanted);
  fields.finish();
  return out;
}

Encoded encoded_of(CallFields fields) {
  Encoded out;
  fields.get("values", out.values);
  out.visible = visible_of(fields.part("visible"));
  fields.get("kept", out.kept);
  fields.finish();
  require(out.values.valid() || out.kept > 0, fields.what(),
          ": values is missing; give what the encoder made");
  return out;
}

TransformerConfig transformer_config_of(CallFields fields) {
  TransformerConfig out;
  out.layer = layer_of(fields.part("layer"));
  if (fields.find("decoder_layer") != nullptr)
    out.decoder_layer = layer_of(fields.part("decoder_layer"));
  fields.get("encoder_layers", out.encoder_layers);
  fields.get("decoder_layers", out.decoder_layers);
  fields.get("last_norm", out.last_norm);
  fields.get("stages", out.stages);
  std::vector<int> chunks;
  fields.get("layer_stages", chunks);
  fields.finish();
  for (const std::int64_t layers : {out.encoder_layers, out.decoder_layers})
    require(layers >= 0 && layers <= 10'000, fields.what(), ": a stack has ", layers,
            " layers; give 0 to 10000");
  if (chunks.empty()) return out;
  require(std::ssize(chunks) == out.layers(), fields.what(), ": layer_stages has ", chunks.size(),
          " numbers for ", out.layers(), " layers; give one for each, those of the encoder first");
  out.lambda_func = [chunks](Scope& layer, std::int64_t id, std::int64_t offset,
                             const TransformerConfig&, std::int64_t) -> void {
    layer.stage(chunks[static_cast<std::size_t>(id + offset)]);
  };
  return out;
}

}  // namespace tessera
