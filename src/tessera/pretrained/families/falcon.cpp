/// Falcon as Hugging Face's folders have it: 7B with one norm in each layer and one key-value head,
/// and the later ones (new_decoder_architecture).

#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kFalcon;

namespace {

bool has_one_norm(const ModelConfig& model) { return model.one_norm; }
bool has_two_norms(const ModelConfig& model) { return !model.one_norm; }

/// Each key-value head has its queries, its key and its value, as here.
constexpr HubName kFalconNames[] = {
    {"embed.token.weight", "transformer.word_embeddings.weight"},
    {"layers.#.attn.qkv.weight", "transformer.h.#.self_attention.query_key_value.weight"},
    {.ours = "layers.#.attn.qkv.bias",
     .theirs = "transformer.h.#.self_attention.query_key_value.bias",
     .is_in = has_qkv_bias},
    {"layers.#.attn.proj.weight", "transformer.h.#.self_attention.dense.weight"},
    {.ours = "layers.#.attn.proj.bias",
     .theirs = "transformer.h.#.self_attention.dense.bias",
     .is_in = has_proj_bias},
    {.ours = "layers.#.norm1", .theirs = "transformer.h.#.input_layernorm", .is_in = has_one_norm},
    {.ours = "layers.#.norm1", .theirs = "transformer.h.#.ln_attn", .is_in = has_two_norms},
    {.ours = "layers.#.norm2", .theirs = "transformer.h.#.ln_mlp", .is_in = has_two_norms},
    {"layers.#.mlp.up.weight", "transformer.h.#.mlp.dense_h_to_4h.weight"},
    {.ours = "layers.#.mlp.up.bias",
     .theirs = "transformer.h.#.mlp.dense_h_to_4h.bias",
     .is_in = has_ffn_bias},
    {"layers.#.mlp.down.weight", "transformer.h.#.mlp.dense_4h_to_h.weight"},
    {.ours = "layers.#.mlp.down.bias",
     .theirs = "transformer.h.#.mlp.dense_4h_to_h.bias",
     .is_in = has_ffn_bias},
    {"norm", "transformer.ln_f"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    kHubTwoScoreNames[0],
    kHubTwoScoreNames[1],
};
constexpr HubTie kFalconTies[] = {
    {"transformer.word_embeddings.weight", "lm_head.weight", true, TaskHead::CausalLm}};
constexpr std::string_view kFalconUnread[] = {"h.*.self_attention.rotary_emb.inv_freq"};

constexpr HubKey kFalconKeys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 4544},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 32, .also = "n_layer"},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 71, .also = "n_head"},
    {.key = "ffn_hidden_size", .slot = &ModelConfig::ffn_width, .standard = 0, .null = 0},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 65024},
    {.key = "max_position_embeddings",
     .slot = &ModelConfig::context,
     .standard = 2048,
     .write = HubWrite::IfMissing},
    {.key = "bias", .slot = &ModelConfig::bias, .standard = false},
    {.key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = true},
    hub_activation("activation", "gelu"),
    hub_norm_eps("layer_norm_epsilon", 1e-5),
    hub_init_std("initializer_range", 0.02),
    hub_rate("hidden_dropout", &ModelConfig::dropout, 0.0),
    hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.0),
    must_be("alibi", false, "positions are rotary here"),
    must_be("parallel_attn", true, "attention and feed-forward are side by side here"),
    {.key = "new_decoder_architecture", .use = HubUse::Own, .shapes = true},
    {.key = "num_kv_heads", .use = HubUse::Own, .also = "n_head_kv", .shapes = true},
    {.key = "multi_query", .use = HubUse::Own, .shapes = true},
    {.key = "num_ln_in_parallel_attn", .use = HubUse::Own, .shapes = true},
    {.key = "rope_theta", .use = HubUse::Own},
    {.key = "rope_scaling", .use = HubUse::Own},
    {.key = "rope_parameters", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kFalconBlocks[] = {kFalconKeys, kHubHiddenTokenDropout};

void read_falcon(const HubConfig& from, ModelConfig& to) {
  const auto is = [&](const char* key, bool standard) {
    return from.has(key) ? from.truth(key) : standard;
  };
  const char* const kv = from.has("num_kv_heads") ? "num_kv_heads" : "n_head_kv";
  const char* const norms = "num_ln_in_parallel_attn";
  const bool later = is("new_decoder_architecture", false);
  to.kv_heads = later && from.has(kv)               ? from.whole(kv, 1, 1'000'000)
                : !later && is("multi_query", true) ? 1
                                                    : to.heads;
  to.one_norm = !later || (from.has(norms) && from.whole(norms, 1, 2) == 1);
  read_rotary(from, to);
}

void write_falcon(const ModelConfig& from, HubJson& to) {
  const bool first = from.one_norm && (from.groups() == 1 || from.groups() == from.heads);
  to["new_decoder_architecture"] = !first;
  to["multi_query"] = from.groups() == 1 || !first;
  to["num_kv_heads"] = first ? from.heads : from.groups();
  to["num_ln_in_parallel_attn"] = first ? HubJson(nullptr) : HubJson(from.one_norm ? 1 : 2);
  write_rotary(from, to);
}

constexpr HubClass kFalconClasses[] = {
    {TaskHead::CausalLm, "FalconForCausalLM"},
    {TaskHead::SequenceClassification, "FalconForSequenceClassification"},
    {TaskHead::TokenClassification, "FalconForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubFalcon = {
    .model_type = "falcon",
    .classes = kFalconClasses,
    .base_class = "FalconModel",
    .family = &kFalcon,
    .prefix = "transformer.",
    .names = kFalconNames,
    .ties = kFalconTies,
    .unread = kFalconUnread,
    .keys = kFalconBlocks,
    .harmless = "apply_residual_connection_post_layernorm",
    .read = read_falcon,
    .write = write_falcon,
    .grouped_queries = true,
    .ends_by_padding = true,
};

}  // namespace tessera
