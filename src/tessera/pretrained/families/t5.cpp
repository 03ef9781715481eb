/// T5 as Hugging Face's folders have it: T5ForConditionalGeneration, versions 1.0 and 1.1.

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/translation.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

extern const ModelFamily kT5;

namespace {

constexpr std::string_view kT5Gated = "gated-gelu", kT5Plain = "relu";

bool is_gated(const ModelConfig& model) { return model.activation == kT5Gated; }
bool is_plain(const ModelConfig& model) { return !is_gated(model); }

// The numbers of positions are in the first layer of a stack, and all of its layers use them.
constexpr HubName kT5Names[] = {
    {"embed.token.weight", "shared.weight"},
    {"embed.relative.weight",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"encoder.layers.#.norm1.weight", "encoder.block.#.layer.0.layer_norm.weight"},
    {"encoder.layers.#.attn.qkv.weight", "encoder.block.#.layer.0.SelfAttention.q.weight",
     HubRows::Queries},
    {"encoder.layers.#.attn.qkv.weight", "encoder.block.#.layer.0.SelfAttention.k.weight",
     HubRows::Keys},
    {"encoder.layers.#.attn.qkv.weight", "encoder.block.#.layer.0.SelfAttention.v.weight",
     HubRows::Values},
    {"encoder.layers.#.attn.proj.weight", "encoder.block.#.layer.0.SelfAttention.o.weight"},
    {"encoder.layers.#.norm2.weight", "encoder.block.#.layer.1.layer_norm.weight"},
    {"encoder.layers.#.mlp.gate.weight", "encoder.block.#.layer.1.DenseReluDense.wi_0.weight",
     HubRows::All, HubOrder::OutIn, is_gated},
    {"encoder.layers.#.mlp.up.weight", "encoder.block.#.layer.1.DenseReluDense.wi_1.weight",
     HubRows::All, HubOrder::OutIn, is_gated},
    {"encoder.layers.#.mlp.up.weight", "encoder.block.#.layer.1.DenseReluDense.wi.weight",
     HubRows::All, HubOrder::OutIn, is_plain},
    {"encoder.layers.#.mlp.down.weight", "encoder.block.#.layer.1.DenseReluDense.wo.weight"},
    {"encoder.norm.weight", "encoder.final_layer_norm.weight"},
    {"embed_target.relative.weight",
     "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"decoder.layers.#.norm1.weight", "decoder.block.#.layer.0.layer_norm.weight"},
    {"decoder.layers.#.attn.qkv.weight", "decoder.block.#.layer.0.SelfAttention.q.weight",
     HubRows::Queries},
    {"decoder.layers.#.attn.qkv.weight", "decoder.block.#.layer.0.SelfAttention.k.weight",
     HubRows::Keys},
    {"decoder.layers.#.attn.qkv.weight", "decoder.block.#.layer.0.SelfAttention.v.weight",
     HubRows::Values},
    {"decoder.layers.#.attn.proj.weight", "decoder.block.#.layer.0.SelfAttention.o.weight"},
    {"decoder.layers.#.norm_cross.weight", "decoder.block.#.layer.1.layer_norm.weight"},
    {"decoder.layers.#.cross.q.weight", "decoder.block.#.layer.1.EncDecAttention.q.weight"},
    {"decoder.layers.#.cross.kv.weight", "decoder.block.#.layer.1.EncDecAttention.k.weight",
     HubRows::CrossKeys},
    {"decoder.layers.#.cross.kv.weight", "decoder.block.#.layer.1.EncDecAttention.v.weight",
     HubRows::CrossValues},
    {"decoder.layers.#.cross.proj.weight", "decoder.block.#.layer.1.EncDecAttention.o.weight"},
    {"decoder.layers.#.norm2.weight", "decoder.block.#.layer.2.layer_norm.weight"},
    {"decoder.layers.#.mlp.gate.weight", "decoder.block.#.layer.2.DenseReluDense.wi_0.weight",
     HubRows::All, HubOrder::OutIn, is_gated},
    {"decoder.layers.#.mlp.up.weight", "decoder.block.#.layer.2.DenseReluDense.wi_1.weight",
     HubRows::All, HubOrder::OutIn, is_gated},
    {"decoder.layers.#.mlp.up.weight", "decoder.block.#.layer.2.DenseReluDense.wi.weight",
     HubRows::All, HubOrder::OutIn, is_plain},
    {"decoder.layers.#.mlp.down.weight", "decoder.block.#.layer.2.DenseReluDense.wo.weight"},
    {"decoder.norm.weight", "decoder.final_layer_norm.weight"},
    {"head.weight", "lm_head.weight"},
};

constexpr HubTie kT5Ties[] = {{"shared.weight", "encoder.embed_tokens.weight"},
                              {"shared.weight", "decoder.embed_tokens.weight"},
                              {"shared.weight", "lm_head.weight", true}};

// Numbers of positions that old files have between encoder and decoder, where nothing reads them.
constexpr std::string_view kT5Unread[] = {
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};

constexpr HubKey kT5Keys[] = {
    {.key = "d_model", .slot = &ModelConfig::width, .standard = 512, .also = "hidden_size"},
    {.key = "num_heads", .slot = &ModelConfig::heads, .standard = 8, .also = "num_attention_heads"},
    {.key = "d_kv", .slot = &ModelConfig::head_width, .standard = 64, .also = "head_dim"},
    {.key = "d_ff", .slot = &ModelConfig::ffn_width, .standard = 2048},
    {.key = "num_layers", .slot = &ModelConfig::layers, .standard = 6, .also = "num_hidden_layers"},
    {.key = "num_decoder_layers", .slot = &ModelConfig::decoder_layers, .standard = 0, .null = 0},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 32128},
    {.key = "relative_attention_num_buckets", .slot = &ModelConfig::distance_kinds, .standard = 32},
    {.key = "relative_attention_max_distance", .slot = &ModelConfig::far_distance, .standard = 128},
    hub_norm_eps("layer_norm_epsilon", 1e-6),
    hub_init_std("initializer_factor", 1.0),
    hub_rate("dropout_rate", &ModelConfig::dropout, 0.1),
    {.key = "feed_forward_proj",
     .slot = &ModelConfig::activation,
     .standard = kT5Plain,
     .words = "relu gated-gelu"},
    // A length of samples that version 4 named; positions have no end.
    {.key = "n_positions",
     .slot = &ModelConfig::context,
     .standard = kMostHubContext,
     .write = HubWrite::Never},
    must_have_been("is_decoder", false, "there are an encoder and a decoder here"),
    {.key = "dense_act_fn", .use = HubUse::Own},
    {.key = "is_gated_act", .use = HubUse::Own},
    {.key = "tie_word_embeddings", .use = HubUse::Own},
    {.key = "scale_decoder_outputs", .use = HubUse::Own},
    {.key = "pad_token_id", .use = HubUse::Own},
    {.key = "decoder_start_token_id", .use = HubUse::Own},
    {.key = "eos_token_id", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kT5Blocks[] = {kT5Keys};

/// What version 4 and later derive from feed_forward_proj, and write beside it: it must agree.
void judge_t5_activation(const HubConfig& from, const ModelConfig& to) {
  const std::string wanted = is_gated(to) ? "gelu_new" : "relu";
  const auto differs = [&](std::string_view key, std::string_view value) {
    from.refuse(key, text("feed_forward_proj ", to.activation, " makes it ", value));
  };
  if (from.find("dense_act_fn") != nullptr && from.word("dense_act_fn") != wanted)
    differs("dense_act_fn", wanted);
  if (from.find("is_gated_act") != nullptr && from.truth("is_gated_act") != is_gated(to))
    differs("is_gated_act", is_gated(to) ? "true" : "false");
}

/// As version 5 does: tie_word_embeddings says whether logits are scaled, unless the other key
/// does; the head is the table unless the weights have one of its own.
void read_t5(const HubConfig& from, ModelConfig& to) {
  judge_t5_activation(from, to);
  bool scaled = true;
  if (from.has("tie_word_embeddings")) scaled = from.truth("tie_word_embeddings");
  if (from.find("scale_decoder_outputs") != nullptr) scaled = from.truth("scale_decoder_outputs");
  to.tied_head = true;
  to.logit_scale = scaled ? 0 : 1;
  const std::int32_t pad = from.id("pad_token_id", 0);
  to.special_tokens = to_text(
      TranslationTokens{pad, from.id("decoder_start_token_id", pad), from.id("eos_token_id", 1)});
}

void untie_t5(ModelConfig& model) {
  const double scale = tied_logit_scale(model);
  model.tied_head = false;
  model.logit_scale = scale == 1 ? 0 : scale;
}

void write_t5(const ModelConfig& from, HubJson& to) {
  to["is_encoder_decoder"] = true;
  const double scale = tied_logit_scale(from);
  const bool scaled = scale != 1;
  require(!scaled || scale == 1 / std::sqrt(static_cast<double>(from.width)),
          "export: logit-scale is ", scale, "; transformers' T5 supports only 1 and 1/sqrt(width)");
  // Version 4 knows the first key alone, by which it means both; in a file of version 5, which has
  // the second, it is true whatever the head.
  if (!to.contains("scale_decoder_outputs")) to["tie_word_embeddings"] = scaled;
  to["scale_decoder_outputs"] = scaled;
  to["dense_act_fn"] = is_gated(from) ? "gelu_new" : "relu";
  to["is_gated_act"] = is_gated(from);
  const TranslationTokens tokens = translation_tokens(from);
  to["pad_token_id"] = tokens.pad;
  to["decoder_start_token_id"] = tokens.start;
  to["eos_token_id"] = tokens.end;
}

constexpr HubClass kT5Classes[] = {{TaskHead::Seq2SeqLm, "T5ForConditionalGeneration"}};

}  // namespace

extern constinit const HubFamily kHubT5 = {
    .model_type = "t5",
    .classes = kT5Classes,
    .base_class = "T5Model",
    .family = &kT5,
    .prefix = "",
    .names = kT5Names,
    .ties = kT5Ties,
    .unread = kT5Unread,
    .keys = kT5Blocks,
    .harmless = "classifier_dropout",
    .read = read_t5,
    .write = write_t5,
    .untie = untie_t5,
    // Version 1.1, of which version 5 too writes that it is tied.
    .has_own_head = [](const ModelConfig& model) { return tied_logit_scale(model) == 1; },
};

}  // namespace tessera
