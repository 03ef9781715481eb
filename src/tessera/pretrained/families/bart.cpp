/// BART as Hugging Face's folders have it: BartForConditionalGeneration.

#include "tessera/models/translation.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

extern const ModelFamily kBart;

namespace {

constexpr HubName kBartNames[] = {
    {"embed.token.weight", "model.shared.weight"},
    {"embed.position.weight", "model.encoder.embed_positions.weight"},
    {"embed.norm", "model.encoder.layernorm_embedding"},
    {"encoder.layers.#.attn.qkv", "model.encoder.layers.#.self_attn.q_proj", HubRows::Queries},
    {"encoder.layers.#.attn.qkv", "model.encoder.layers.#.self_attn.k_proj", HubRows::Keys},
    {"encoder.layers.#.attn.qkv", "model.encoder.layers.#.self_attn.v_proj", HubRows::Values},
    {"encoder.layers.#.attn.proj", "model.encoder.layers.#.self_attn.out_proj"},
    {"encoder.layers.#.norm1", "model.encoder.layers.#.self_attn_layer_norm"},
    {"encoder.layers.#.mlp.up", "model.encoder.layers.#.fc1"},
    {"encoder.layers.#.mlp.down", "model.encoder.layers.#.fc2"},
    {"encoder.layers.#.norm2", "model.encoder.layers.#.final_layer_norm"},
    {"embed_target.position.weight", "model.decoder.embed_positions.weight"},
    {"embed_target.norm", "model.decoder.layernorm_embedding"},
    {"decoder.layers.#.attn.qkv", "model.decoder.layers.#.self_attn.q_proj", HubRows::Queries},
    {"decoder.layers.#.attn.qkv", "model.decoder.layers.#.self_attn.k_proj", HubRows::Keys},
    {"decoder.layers.#.attn.qkv", "model.decoder.layers.#.self_attn.v_proj", HubRows::Values},
    {"decoder.layers.#.attn.proj", "model.decoder.layers.#.self_attn.out_proj"},
    {"decoder.layers.#.norm1", "model.decoder.layers.#.self_attn_layer_norm"},
    {"decoder.layers.#.cross.q", "model.decoder.layers.#.encoder_attn.q_proj"},
    {"decoder.layers.#.cross.kv", "model.decoder.layers.#.encoder_attn.k_proj", HubRows::CrossKeys},
    {"decoder.layers.#.cross.kv", "model.decoder.layers.#.encoder_attn.v_proj",
     HubRows::CrossValues},
    {"decoder.layers.#.cross.proj", "model.decoder.layers.#.encoder_attn.out_proj"},
    {"decoder.layers.#.norm_cross", "model.decoder.layers.#.encoder_attn_layer_norm"},
    {"decoder.layers.#.mlp.up", "model.decoder.layers.#.fc1"},
    {"decoder.layers.#.mlp.down", "model.decoder.layers.#.fc2"},
    {"decoder.layers.#.norm2", "model.decoder.layers.#.final_layer_norm"},
};

constexpr HubTie kBartTies[] = {{"model.shared.weight", "model.encoder.embed_tokens.weight"},
                                {"model.shared.weight", "model.decoder.embed_tokens.weight"},
                                {"model.shared.weight", "lm_head.weight"}};

constexpr HubZeros kBartZeros[] = {{"final_logits_bias", [](const ModelConfig& model) {
                                      return Shape{1, model.vocabulary};
                                    }}};

constexpr HubKey kBartKeys[] = {
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
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 50265},
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
     .use = HubUse::Must,
     .standard = "gelu",
     .must = "gelu",
     .words = "gelu"},
    must_be("tie_word_embeddings", true, "the head is the token embedding here"),
    must_be("encoder_layerdrop", 0.0, "no layer is left out here; write 0 to train without"),
    must_be("decoder_layerdrop", 0.0, "no layer is left out here; write 0 to train without"),
    must_have_been("is_decoder", false, "there are an encoder and a decoder here"),
    must_have_been("add_cross_attention", false, "the decoder reads the encoder without it"),
    // Files of the first versions say how layers are built; all models that came of them agree.
    must_have_been("normalize_before", false, "norms are behind each part here"),
    must_have_been("normalize_embedding", true, "there is a norm behind embeddings here"),
    must_have_been("add_final_layer_norm", false, "stacks end without a norm here"),
    must_have_been("static_position_embeddings", false, "positions are learned here"),
    must_have_been("extra_pos_embeddings", 2, "two rows before the first position are not read"),
    {.key = "pad_token_id", .use = HubUse::Own},
    {.key = "decoder_start_token_id", .use = HubUse::Own},
    {.key = "eos_token_id", .use = HubUse::Own},
    {.key = "bos_token_id", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kBartBlocks[] = {kBartKeys};
// Heads of classes that are not read, and what generation does.
constexpr std::string_view kBartHarmless =
    "classifier_dropout classif_dropout add_bias_logits force_bos_token_to_be_generated "
    "save_step do_blenderbot_90_layernorm";

/// Of a model whose texts begin with nothing bos_token_id is null.
void read_bart(const HubConfig& from, ModelConfig& to) {
  if (to.decoder_heads == to.heads) to.decoder_heads = 0;
  if (to.decoder_ffn_width == to.ffn_width) to.decoder_ffn_width = 0;
  TranslationTokens tokens{from.id("pad_token_id", 1), from.id("decoder_start_token_id", 2),
                           from.id("eos_token_id", 2)};
  const bool none = from.find("bos_token_id") != nullptr && !from.has("bos_token_id");
  if (!none) tokens.first = from.id("bos_token_id", 0);
  to.special_tokens = to_text(tokens);
}

void write_bart(const ModelConfig& from, HubJson& to) {
  to["is_encoder_decoder"] = true;
  const TranslationTokens tokens = translation_tokens(from);
  to["pad_token_id"] = tokens.pad;
  to["decoder_start_token_id"] = tokens.start;
  to["eos_token_id"] = to["forced_eos_token_id"] = tokens.end;
  to["bos_token_id"] = nullptr;
  if (tokens.first) to["bos_token_id"] = to["forced_bos_token_id"] = *tokens.first;
}

constexpr HubClass kBartClasses[] = {{TaskHead::Seq2SeqLm, "BartForConditionalGeneration"}};

}  // namespace

extern constinit const HubFamily kHubBart = {
    .model_type = "bart",
    .classes = kBartClasses,
    .base_class = "BartModel",
    .family = &kBart,
    .prefix = "model.",
    .names = kBartNames,
    .ties = kBartTies,
    .zeros = kBartZeros,
    .keys = kBartBlocks,
    .harmless = kBartHarmless,
    .read = read_bart,
    .write = write_bart,
};

}  // namespace tessera
