#pragma once
/// What the folders of BART and the models after it have alike.

#include "tessera/models/families/bart.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_pairs.h"

namespace tessera {

inline constexpr HubName kBartBody[] = {
    {"encoder.layers.#.attn.qkv", "encoder.layers.#.self_attn.q_proj", HubRows::Queries},
    {"encoder.layers.#.attn.qkv", "encoder.layers.#.self_attn.k_proj", HubRows::Keys},
    {"encoder.layers.#.attn.qkv", "encoder.layers.#.self_attn.v_proj", HubRows::Values},
    {"encoder.layers.#.attn.proj", "encoder.layers.#.self_attn.out_proj"},
    {"encoder.layers.#.norm1", "encoder.layers.#.self_attn_layer_norm"},
    {"encoder.layers.#.mlp.up", "encoder.layers.#.fc1"},
    {"encoder.layers.#.mlp.down", "encoder.layers.#.fc2"},
    {"encoder.layers.#.norm2", "encoder.layers.#.final_layer_norm"},
    {"decoder.layers.#.attn.qkv", "decoder.layers.#.self_attn.q_proj", HubRows::Queries},
    {"decoder.layers.#.attn.qkv", "decoder.layers.#.self_attn.k_proj", HubRows::Keys},
    {"decoder.layers.#.attn.qkv", "decoder.layers.#.self_attn.v_proj", HubRows::Values},
    {"decoder.layers.#.attn.proj", "decoder.layers.#.self_attn.out_proj"},
    {"decoder.layers.#.norm1", "decoder.layers.#.self_attn_layer_norm"},
    {"decoder.layers.#.cross.q", "decoder.layers.#.encoder_attn.q_proj"},
    {"decoder.layers.#.cross.kv", "decoder.layers.#.encoder_attn.k_proj", HubRows::CrossKeys},
    {"decoder.layers.#.cross.kv", "decoder.layers.#.encoder_attn.v_proj", HubRows::CrossValues},
    {"decoder.layers.#.cross.proj", "decoder.layers.#.encoder_attn.out_proj"},
    {"decoder.layers.#.norm_cross", "decoder.layers.#.encoder_attn_layer_norm"},
    {"decoder.layers.#.mlp.up", "decoder.layers.#.fc1"},
    {"decoder.layers.#.mlp.down", "decoder.layers.#.fc2"},
    {"decoder.layers.#.norm2", "decoder.layers.#.final_layer_norm"},
};
/// Of stacks that end in a norm.
inline constexpr HubName kBartLastNorms[] = {
    {"encoder.norm", "model.encoder.layer_norm"},
    {"decoder.norm", "model.decoder.layer_norm"},
};
inline constexpr HubName kBartTable[] = {{"embed.token.weight", "model.shared.weight"}};
inline constexpr HubName kBartPositions[] = {
    {"embed.position.weight", "model.encoder.embed_positions.weight"},
    {"embed_target.position.weight", "model.decoder.embed_positions.weight"},
    {"embed.norm", "model.encoder.layernorm_embedding"},
    {"embed_target.norm", "model.decoder.layernorm_embedding"},
};
inline constexpr HubName kBartLogitBias[] = {
    {"head.bias", "final_logits_bias", HubRows::OneRow},
};

inline constexpr HubTie kBartTies[] = {{"model.shared.weight", "model.encoder.embed_tokens.weight"},
                                       {"model.shared.weight", "model.decoder.embed_tokens.weight"},
                                       {"model.shared.weight", "lm_head.weight"}};

/// Sines of positions, then cosines.
double bart_sine(const ModelConfig& model, std::int64_t i);
constexpr double kSineRounding = 1.0 / 512;  // to bf16
template <bool kWritten>
inline constexpr HubConstant kBartSines[] = {{.name = "model.encoder.embed_positions.weight",
                                              .why = "sines of positions",
                                              .shape = [](const ModelConfig& model) -> Shape {
                                                return {model.most_positions(), model.width};
                                              },
                                              .at = bart_sine,
                                              .within = kSineRounding,
                                              .is_written = kWritten},
                                             {.name = "model.decoder.embed_positions.weight",
                                              .why = "sines of positions",
                                              .shape = [](const ModelConfig& model) -> Shape {
                                                return {model.most_positions(), model.width};
                                              },
                                              .at = bart_sine,
                                              .within = kSineRounding,
                                              .is_written = kWritten}};

inline constexpr HubKey kBartKeys[] = {
    {.key = "d_model", .slot = &ModelConfig::width, .standard = 1024, .also = "hidden_size"},
    {.key = "encoder_layers",
     .slot = &ModelConfig::layers,
     .standard = 12,
     .also = "num_hidden_layers"},
    {.key = "decoder_layers", .slot = &ModelConfig::decoder_layers, .standard = 12},
    {.key = "encoder_attention_heads",
     .slot = &ModelConfig::heads,
     .standard = 16,
     .also = "num_attention_heads"},
    {.key = "decoder_attention_heads", .slot = &ModelConfig::decoder_heads, .standard = 16},
    {.key = "encoder_ffn_dim", .slot = &ModelConfig::ffn_width, .standard = 4096},
    {.key = "decoder_ffn_dim", .slot = &ModelConfig::decoder_ffn_width, .standard = 4096},
    {.key = "max_position_embeddings", .slot = &ModelConfig::positions, .standard = 1024},
    {.key = "init_std", .slot = &ModelConfig::init_std, .standard = 0.02, .least = 0, .most = 1e6},
    hub_rate("dropout", &ModelConfig::dropout, 0.1),
    {.key = "activation_dropout",
     .use = HubUse::Same,
     .slot = &ModelConfig::dropout,
     .standard = 0.0},
    hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.0),
    {.key = "scale_embedding",
     .slot = &ModelConfig::scale_embedding,
     .standard = false,
     .null = false},
    {.key = "activation_function",
     .slot = &ModelConfig::activation,
     .standard = "gelu",
     .words = "gelu gelu_new relu silu swish"},
    must_be("tie_word_embeddings", true, "the head is the token embedding here"),
    must_be("encoder_layerdrop", 0.0, "no layer is left out here; write 0 to train without"),
    must_be("decoder_layerdrop", 0.0, "no layer is left out here; write 0 to train without"),
    must_have_been("is_decoder", false, "there are an encoder and a decoder here"),
    must_have_been("add_cross_attention", false, "the decoder reads the encoder without it"),
    {.key = "pad_token_id", .use = HubUse::Own},
    {.key = "decoder_start_token_id", .use = HubUse::Own},
    {.key = "eos_token_id", .use = HubUse::Own},
};
/// The vocabulary; and what files of the first versions say of how layers are built.
template <BartForm kForm, std::int64_t kVocabulary>
inline constexpr HubKey kBartFormKeys[] = {
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = kVocabulary},
    must_have_been(
        "normalize_before", !kForm.post_norm,
        kForm.post_norm ? "norms are behind each part here" : "norms are before each part here"),
    must_have_been("normalize_embedding", kForm.embedding_norm,
                   kForm.embedding_norm ? "there is a norm behind embeddings here"
                                        : "there is no norm behind embeddings here"),
    must_have_been(
        "add_final_layer_norm", !kForm.post_norm,
        kForm.post_norm ? "stacks end without a norm here" : "stacks end in a norm here"),
    must_have_been("static_position_embeddings", kForm.sines,
                   kForm.sines ? "positions are sines here" : "positions are learned here"),
};
/// Heads of classes that are not read, and what generation does.
inline constexpr std::string_view kBartHarmless =
    "classifier_dropout classif_dropout add_bias_logits force_bos_token_to_be_generated "
    "save_step do_blenderbot_90_layernorm extra_pos_embeddings _num_labels";

/// Reads and writes the rows of HubUse::Own; `standard`: tokens where nothing says them.
TranslationTokens read_bart_stacks(const HubConfig& from, TranslationTokens standard,
                                   ModelConfig& to);
void write_bart_stacks(const ModelConfig& from, HubJson& to);
/// Of those with sines.
template <std::int32_t kPad, std::int32_t kStart, std::int32_t kEnd>
void read_bart_with_sines(const HubConfig& from, ModelConfig& to) {
  if (to.width % 2 != 0) from.refuse("d_model", "sines as positions need an even width here");
  to.special_tokens = to_text(read_bart_stacks(from, {kPad, kStart, kEnd}, to));
}

constexpr HubFamily bart_folders(HubFamily with) {
  with.prefix = "model.";
  with.body = kBartBody;
  if (with.ties.empty()) with.ties = kBartTies;
  with.harmless = kBartHarmless;
  return with;
}

}  // namespace tessera
