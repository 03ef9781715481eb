/// OPT as Hugging Face's folders have it.

#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kOpt;

namespace {

constexpr HubName kOptNames[] = {
    {"embed.token.weight", "model.decoder.embed_tokens.weight"},
    {"embed.position.weight", "model.decoder.embed_positions.weight"},
    {"layers.#.attn.qkv.weight", "model.decoder.layers.#.self_attn.q_proj.weight",
     HubRows::Queries},
    {"layers.#.attn.qkv.weight", "model.decoder.layers.#.self_attn.k_proj.weight", HubRows::Keys},
    {"layers.#.attn.qkv.weight", "model.decoder.layers.#.self_attn.v_proj.weight", HubRows::Values},
    {"layers.#.attn.qkv.bias", "model.decoder.layers.#.self_attn.q_proj.bias", HubRows::Queries,
     HubOrder::OutIn, has_qkv_bias},
    {"layers.#.attn.qkv.bias", "model.decoder.layers.#.self_attn.k_proj.bias", HubRows::Keys,
     HubOrder::OutIn, has_qkv_bias},
    {"layers.#.attn.qkv.bias", "model.decoder.layers.#.self_attn.v_proj.bias", HubRows::Values,
     HubOrder::OutIn, has_qkv_bias},
    {"layers.#.attn.proj.weight", "model.decoder.layers.#.self_attn.out_proj.weight"},
    {.ours = "layers.#.attn.proj.bias",
     .theirs = "model.decoder.layers.#.self_attn.out_proj.bias",
     .is_in = has_proj_bias},
    {"layers.#.norm1", "model.decoder.layers.#.self_attn_layer_norm"},
    {"layers.#.norm2", "model.decoder.layers.#.final_layer_norm"},
    {"layers.#.mlp.up.weight", "model.decoder.layers.#.fc1.weight"},
    {.ours = "layers.#.mlp.up.bias",
     .theirs = "model.decoder.layers.#.fc1.bias",
     .is_in = has_ffn_bias},
    {"layers.#.mlp.down.weight", "model.decoder.layers.#.fc2.weight"},
    {.ours = "layers.#.mlp.down.bias",
     .theirs = "model.decoder.layers.#.fc2.bias",
     .is_in = has_ffn_bias},
    {"norm", "model.decoder.final_layer_norm"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    {.ours = "score.weight", .theirs = "score.weight", .heads = TaskHead::SequenceClassification},
};
constexpr HubTie kOptTies[] = {
    {"model.decoder.embed_tokens.weight", "lm_head.weight", true, TaskHead::CausalLm}};
constexpr std::string_view kOptUnread[] = {"decoder.version"};

constexpr HubKey kOptKeys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 768},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 12},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 12},
    {.key = "ffn_dim", .slot = &ModelConfig::ffn_width, .standard = 3072},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 50272},
    {.key = "max_position_embeddings", .slot = &ModelConfig::positions, .standard = 2048},
    hub_activation("activation_function", "relu"),
    hub_init_std("init_std", 0.02),
    hub_rate("dropout", &ModelConfig::dropout, 0.1),
    hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.0),
    {.key = "enable_bias", .slot = &ModelConfig::bias, .standard = true},
    {.key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = true},
    must_be("do_layer_norm_before", true, "norms stand before each part here"),
    must_be("layer_norm_elementwise_affine", true, "norms have weights here"),
    must_have_been("_remove_final_layer_norm", false, "the last norm is there"),
    must_be("layerdrop", 0.0, "no layer is left out here"),
    {.key = "word_embed_proj_dim", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kOptBlocks[] = {kOptKeys};

void read_opt(const HubConfig& from, ModelConfig& to) {
  constexpr const char* kProjected = "word_embed_proj_dim";
  if (from.has(kProjected) && from.whole(kProjected, 1, 1'000'000'000) != to.width)
    from.refuse(kProjected,
                text("the table of tokens is as wide as the layers here, hidden_size ", to.width));
}

constexpr HubClass kOptClasses[] = {
    {TaskHead::CausalLm, "OPTForCausalLM"},
    {TaskHead::SequenceClassification, "OPTForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubOpt = {
    .model_type = "opt",
    .classes = kOptClasses,
    .base_class = "OPTModel",
    .family = &kOpt,
    .prefix = "model.",
    .names = kOptNames,
    .ties = kOptTies,
    .unread = kOptUnread,
    .keys = kOptBlocks,
    .read = read_opt,
    .write = [](const ModelConfig& from, HubJson& to) { to["word_embed_proj_dim"] = from.width; },
    .grouped_queries = false,
    .ends_by_padding = true,
};

}  // namespace tessera
