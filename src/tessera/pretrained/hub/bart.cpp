/// BART as Hugging Face's folders have it: BartForConditionalGeneration.

#include "tessera/models/translation.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

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

// Copies of the shared table.
constexpr std::string_view kBartUnread[] = {"encoder.embed_tokens.weight",
                                            "decoder.embed_tokens.weight", "lm_head.weight"};

constexpr HubZeros kBartZeros[] = {{"final_logits_bias", [](const ModelConfig& model) {
                                      return Shape{1, model.vocabulary};
                                    }}};

void read_bart(const HubConfig& from, ModelConfig& to) {
  to.width = from.count("d_model", 1024);
  to.layers = from.count("encoder_layers", 12);
  to.decoder_layers = from.count("decoder_layers", 12);
  to.heads = from.count("encoder_attention_heads", 16);
  to.ffn_width = from.count("encoder_ffn_dim", 4096);
  from.require_count("decoder_attention_heads", to.heads, to.heads,
                     "encoder and decoder have as many heads here");
  from.require_count("decoder_ffn_dim", to.ffn_width, to.ffn_width,
                     "encoder and decoder have equal layers here");
  to.positions = from.count("max_position_embeddings", 1024);
  to.vocabulary = from.count("vocab_size", 50265);
  to.init_std = from.number("init_std", 0.02);
  to.dropout = from.same_rate({"dropout", "activation_dropout"}, 0.1);
  to.attention_dropout = from.rate_beside("attention_dropout", 0.1, to.dropout);
  to.scale_embedding = from.truth("scale_embedding", false);
  from.require_word("activation_function", "gelu", {"gelu"});
  from.require_truth("tie_word_embeddings", true, "the head is the token embedding here");
  from.require_truth("is_decoder", false, "there are an encoder and a decoder here");
  // Files of the first versions say how layers are built; all models that came of them agree.
  from.require_truth("normalize_before", false, "norms are behind each part here");
  from.require_truth("normalize_embedding", true, "there is a norm behind embeddings here");
  from.require_truth("add_final_layer_norm", false, "stacks end without a norm here");
  from.require_truth("static_position_embeddings", false, "positions are learned here");
  const auto id = [&](std::string_view key, std::int64_t standard) {
    return static_cast<std::int32_t>(from.id(key, standard));
  };
  const std::int32_t end = id("eos_token_id", 2);
  TranslationTokens tokens{id("pad_token_id", 1), id("decoder_start_token_id", end), end};
  const bool none = from.json().contains("bos_token_id") && !from.has("bos_token_id");  // null
  if (!none) tokens.first = id("bos_token_id", 0);
  to.special_tokens = to_text(tokens);
}

void write_bart(const ModelConfig& from, HubJson& to) {
  to["d_model"] = from.width;
  to["encoder_layers"] = from.layers;
  to["decoder_layers"] = from.decoder();
  for (const char* stack : {"encoder", "decoder"}) {
    to[text(stack, "_attention_heads")] = from.heads;
    to[text(stack, "_ffn_dim")] = from.hidden();
  }
  to["max_position_embeddings"] = from.most_positions();
  to["vocab_size"] = from.vocabulary;
  to["init_std"] = from.init_std;
  to["dropout"] = from.dropout;
  to["attention_dropout"] = from.attention_rate();
  to["activation_dropout"] = from.dropout;
  to["scale_embedding"] = from.scale_embedding;
  to["activation_function"] = "gelu";
  to["is_encoder_decoder"] = true;
  to["tie_word_embeddings"] = true;
  const TranslationTokens tokens = translation_tokens(from);
  to["pad_token_id"] = tokens.pad;
  to["decoder_start_token_id"] = tokens.start;
  to["eos_token_id"] = to["forced_eos_token_id"] = tokens.end;
  to["bos_token_id"] = nullptr;
  if (tokens.first) to["bos_token_id"] = *tokens.first;
}

constexpr HubClass kBartClasses[] = {{kSeq2SeqLm, "BartForConditionalGeneration"}};

}  // namespace

constinit const HubFamily kHubBart = {
    .model_type = "bart",
    .classes = kBartClasses,
    .family = &kBart,
    .prefix = "model.",
    .names = kBartNames,
    .unread = kBartUnread,
    .read = read_bart,
    .write = write_bart,
    .zeros = kBartZeros,
};

}  // namespace tessera
