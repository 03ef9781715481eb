/// T5 as Hugging Face's folders have it: T5ForConditionalGeneration, versions 1.0 and 1.1.

#include "tessera/models/translation.h"
#include "tessera/nn/layers.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

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

// Tables and a head that are the shared one, and numbers of positions that old files have between
// encoder and decoder, where nothing reads them.
constexpr std::string_view kT5Unread[] = {
    "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};

void read_t5(const HubConfig& from, ModelConfig& to) {
  to.width = from.count("d_model", 512);
  to.heads = from.count("num_heads", 8);
  to.head_width = from.count("d_kv", 64);
  to.ffn_width = from.count("d_ff", 2048);
  to.layers = from.count("num_layers", 6);
  to.decoder_layers = from.count("num_decoder_layers", to.layers);
  to.vocabulary = from.count("vocab_size", 32128);
  to.norm_eps = from.number("layer_norm_epsilon", 1e-6);
  to.init_std = from.number("initializer_factor", 1);
  to.dropout = from.same_rate({"dropout_rate"}, 0.1);
  to.activation = from.word("feed_forward_proj", kT5Plain);
  from.require_word("feed_forward_proj", kT5Plain, {kT5Plain, kT5Gated});
  from.require_count("relative_attention_num_buckets", kDistanceKinds, kDistanceKinds,
                     "so many kinds of distances there are here");
  from.require_count("relative_attention_max_distance", kFarDistance, kFarDistance,
                     "this is the furthest distance that is told apart here");
  from.require_truth("is_decoder", false, "there are an encoder and a decoder here");
  // Later versions write true as tie_word_embeddings of all, and say by the other key which it is.
  to.tied_head = from.truth("scale_decoder_outputs", from.truth("tie_word_embeddings", true));
  const auto id = [&](std::string_view key, std::int64_t standard) {
    return static_cast<std::int32_t>(from.id(key, standard));
  };
  const std::int32_t pad = id("pad_token_id", 0);
  to.special_tokens =
      to_text(TranslationTokens{pad, id("decoder_start_token_id", pad), id("eos_token_id", 1)});
}

void write_t5(const ModelConfig& from, HubJson& to) {
  to["d_model"] = from.width;
  to["num_heads"] = from.heads;
  to["d_kv"] = from.head_dim();
  to["d_ff"] = from.hidden();
  to["num_layers"] = from.layers;
  to["num_decoder_layers"] = from.decoder();
  to["vocab_size"] = from.vocabulary;
  to["layer_norm_epsilon"] = from.norm_eps;
  to["initializer_factor"] = from.init_std;
  to["dropout_rate"] = from.dropout;
  to["feed_forward_proj"] = from.activation;
  to["relative_attention_num_buckets"] = kDistanceKinds;
  to["relative_attention_max_distance"] = kFarDistance;
  to["is_encoder_decoder"] = true;
  // A file of a later version has true here, whatever the head.
  if (!to.contains("scale_decoder_outputs")) to["tie_word_embeddings"] = from.tied_head;
  to["scale_decoder_outputs"] = from.tied_head;
  const TranslationTokens tokens = translation_tokens(from);
  to["pad_token_id"] = tokens.pad;
  to["decoder_start_token_id"] = tokens.start;
  to["eos_token_id"] = tokens.end;
}

constexpr HubClass kT5Classes[] = {{kSeq2SeqLm, "T5ForConditionalGeneration"}};

}  // namespace

constinit const HubFamily kHubT5 = {
    .model_type = "t5",
    .classes = kT5Classes,
    .family = &kT5,
    .prefix = "",
    .names = kT5Names,
    .unread = kT5Unread,
    .read = read_t5,
    .write = write_t5,
};

}  // namespace tessera
