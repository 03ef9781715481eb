/// GPT-2 as Hugging Face's folders have it: GPT2LMHeadModel.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

extern const ModelFamily kGpt2;

namespace {

constexpr HubName kGpt2Names[] = {
    {"embed.token.weight", "transformer.wte.weight"},
    {"embed.position.weight", "transformer.wpe.weight"},
    {"layers.#.norm1", "transformer.h.#.ln_1"},
    {"layers.#.attn.qkv", "transformer.h.#.attn.c_attn", HubRows::Fused, HubOrder::InOut},
    {"layers.#.attn.proj", "transformer.h.#.attn.c_proj", HubRows::All, HubOrder::InOut},
    {"layers.#.norm2", "transformer.h.#.ln_2"},
    {"layers.#.mlp.up", "transformer.h.#.mlp.c_fc", HubRows::All, HubOrder::InOut},
    {"layers.#.mlp.down", "transformer.h.#.mlp.c_proj", HubRows::All, HubOrder::InOut},
    {"norm", "transformer.ln_f"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    kHubTwoScoreNames[0],
    kHubTwoScoreNames[1],
};

constexpr HubTie kGpt2Ties[] = {
    {"transformer.wte.weight", "lm_head.weight", true, TaskHead::CausalLm}};

// Masks of attention, which older files hold.
constexpr std::string_view kGpt2Unread[] = {"h.*.attn.bias", "h.*.attn.masked_bias"};

constexpr HubKey kGpt2Keys[] = {
    {.key = "n_embd", .slot = &ModelConfig::width, .standard = 768, .also = "hidden_size"},
    {.key = "n_layer", .slot = &ModelConfig::layers, .standard = 12, .also = "num_hidden_layers"},
    {.key = "n_head", .slot = &ModelConfig::heads, .standard = 12, .also = "num_attention_heads"},
    {.key = "n_inner", .slot = &ModelConfig::ffn_width, .standard = 0, .null = 0},
    {.key = "n_positions",
     .slot = &ModelConfig::positions,
     .standard = 1024,
     .also = "max_position_embeddings"},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 50257},
    hub_norm_eps("layer_norm_epsilon", 1e-5),
    hub_init_std("initializer_range", 0.02),
    hub_rate("resid_pdrop", &ModelConfig::dropout, 0.1),
    {.key = "embd_pdrop", .use = HubUse::Same, .slot = &ModelConfig::dropout, .standard = 0.1},
    hub_rate("attn_pdrop", &ModelConfig::attention_dropout, 0.1),
    {.key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = true},
    {.key = "activation_function",
     .use = HubUse::Must,
     .standard = "gelu_new",
     .must = "gelu_new",
     .words = "gelu_new gelu_pytorch_tanh gelu_fast",
     .write = HubWrite::IfMissing},
    must_be("scale_attn_weights", true, "scores are divided by the root of the head width"),
    must_be("scale_attn_by_inverse_layer_idx", false, "scores of all layers are scaled alike here"),
    must_be("add_cross_attention", false, "this family has no encoder"),
};
constexpr std::span<const HubKey> kGpt2Blocks[] = {kGpt2Keys, kHubTokenDropout};
// How products are rounded in 16 bits, and the head of a class that is not read.
constexpr std::string_view kGpt2Harmless =
    "reorder_and_upcast_attn summary_type summary_use_proj summary_activation "
    "summary_proj_to_labels summary_first_dropout n_ctx is_decoder";

constexpr HubClass kGpt2Classes[] = {
    {TaskHead::CausalLm, "GPT2LMHeadModel"},
    {TaskHead::SequenceClassification, "GPT2ForSequenceClassification"},
    {TaskHead::TokenClassification, "GPT2ForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubGpt2 = {
    .model_type = "gpt2",
    .classes = kGpt2Classes,
    .base_class = "GPT2Model",
    .family = &kGpt2,
    .prefix = "transformer.",
    .names = kGpt2Names,
    .ties = kGpt2Ties,
    .unread = kGpt2Unread,
    .keys = kGpt2Blocks,
    .harmless = kGpt2Harmless,
    .ends_by_padding = true,
};

}  // namespace tessera
