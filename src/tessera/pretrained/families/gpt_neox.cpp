/// GPT-NeoX as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kGptNeox;

namespace {

/// Each head has its query, its key and its value, as here.
constexpr HubName kGptNeoxNames[] = {
    {"embed.token.weight", "gpt_neox.embed_in.weight"},
    {"layers.#.attn.qkv", "gpt_neox.layers.#.attention.query_key_value"},
    {"layers.#.attn.proj", "gpt_neox.layers.#.attention.dense"},
    {"layers.#.norm1", "gpt_neox.layers.#.input_layernorm"},
    {"layers.#.norm2", "gpt_neox.layers.#.post_attention_layernorm"},
    {"layers.#.mlp.up", "gpt_neox.layers.#.mlp.dense_h_to_4h"},
    {"layers.#.mlp.down", "gpt_neox.layers.#.mlp.dense_4h_to_h"},
    {"norm", "gpt_neox.final_layer_norm"},
    {.ours = "head.weight", .theirs = "embed_out.weight", .heads = TaskHead::CausalLm},
    kHubTwoScoreNames[0],
    kHubTwoScoreNames[1],
};
constexpr HubTie kGptNeoxTies[] = {
    {"gpt_neox.embed_in.weight", "embed_out.weight", true, TaskHead::CausalLm}};
constexpr std::string_view kGptNeoxUnread[] = {"layers.*.attention.rotary_emb.inv_freq",
                                               "layers.*.attention.bias",
                                               "layers.*.attention.masked_bias"};

constexpr auto kGptNeoxKeys = hub_decoder_keys({.width = 6144,
                                                .layers = 44,
                                                .heads = 64,
                                                .kv_heads = 0,
                                                .ffn_width = 24576,
                                                .vocabulary = 50432,
                                                .context = 2048});
constexpr HubKey kGptNeoxOwnKeys[] = {
    hub_activation("hidden_act", "gelu"),
    hub_norm_eps("layer_norm_eps", 1e-5),
    must_be("attention_bias", true, "linear layers have biases here"),
    must_be("use_parallel_residual", true, "attention and feed-forward are side by side here"),
    must_have_been("is_decoder", false, "this family has no second stack"),
    hub_rate("hidden_dropout", &ModelConfig::dropout, 0.0),
    {.key = "classifier_dropout",
     .use = HubUse::Rate,
     .slot = &ModelConfig::classifier_dropout,
     .standard = 0.1},
    {.key = "rotary_pct", .use = HubUse::Own},
    {.key = "rotary_emb_base", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kGptNeoxBlocks[] = {kGptNeoxKeys, kGptNeoxOwnKeys};

/// Whether the object of positions that counts says their base.
bool says_base(const HubConfig& from) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (from.has(key) && !from.json()[key].empty()) return from.json()[key].contains("rope_theta");
  }
  return false;
}

/// Files before version 5 have rotary_pct and rotary_emb_base. Beside the object of positions
/// transformers reads the share of channels by this name alone.
void read_gpt_neox(const HubConfig& from, ModelConfig& to) {
  if (from.has("rotary_pct")) to.rotary_share = from.number("rotary_pct", 0, 1);
  HubJson json = from.json();
  json.erase("partial_rotary_factor");
  read_rotary(HubConfig(json.dump(), from.path()), to);
  if (from.has("rotary_emb_base") && !says_base(from))
    to.rope_base = from.number("rotary_emb_base", 1, 1e12);
}

constexpr HubClass kGptNeoxClasses[] = {
    {TaskHead::CausalLm, "GPTNeoXForCausalLM"},
    {TaskHead::SequenceClassification, "GPTNeoXForSequenceClassification"},
    {TaskHead::TokenClassification, "GPTNeoXForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubGptNeox = {
    .model_type = "gpt_neox",
    .classes = kGptNeoxClasses,
    .base_class = "GPTNeoXModel",
    .family = &kGptNeox,
    .prefix = "gpt_neox.",
    .names = kGptNeoxNames,
    .ties = kGptNeoxTies,
    .unread = kGptNeoxUnread,
    .keys = kGptNeoxBlocks,
    .read = read_gpt_neox,
    .write = write_rotary,
    .grouped_queries = false,
    .ends_by_padding = true,
};

}  // namespace tessera
