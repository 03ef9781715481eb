/// GPT-J as Hugging Face's folders have it.

#include <cmath>

#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kGptj;

namespace {

constexpr HubName kGptjNames[] = {
    {"embed.token.weight", "transformer.wte.weight"},
    {"layers.#.attn.qkv.weight", "transformer.h.#.attn.q_proj.weight", HubRows::PairedQueries},
    {"layers.#.attn.qkv.weight", "transformer.h.#.attn.k_proj.weight", HubRows::PairedKeys},
    {"layers.#.attn.qkv.weight", "transformer.h.#.attn.v_proj.weight", HubRows::Values},
    {"layers.#.attn.proj.weight", "transformer.h.#.attn.out_proj.weight"},
    {"layers.#.norm1", "transformer.h.#.ln_1"},
    {"layers.#.mlp.up", "transformer.h.#.mlp.fc_in"},
    {"layers.#.mlp.down", "transformer.h.#.mlp.fc_out"},
    {"norm", "transformer.ln_f"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    {.ours = "head.bias", .theirs = "lm_head.bias", .heads = TaskHead::CausalLm},
    {.ours = "score.weight", .theirs = "score.weight", .heads = TaskHead::SequenceClassification},
};
constexpr HubTie kGptjTies[] = {
    {"transformer.wte.weight", "lm_head.weight", true, TaskHead::CausalLm}};
constexpr std::string_view kGptjUnread[] = {"h.*.attn.bias", "h.*.attn.masked_bias",
                                            "h.*.attn.embed_positions"};

constexpr HubKey kGptjKeys[] = {
    {.key = "n_embd", .slot = &ModelConfig::width, .standard = 4096, .also = "hidden_size"},
    {.key = "n_layer", .slot = &ModelConfig::layers, .standard = 28, .also = "num_hidden_layers"},
    {.key = "n_head", .slot = &ModelConfig::heads, .standard = 16, .also = "num_attention_heads"},
    {.key = "n_inner", .slot = &ModelConfig::ffn_width, .standard = 0, .null = 0},
    {.key = "n_positions",
     .slot = &ModelConfig::context,
     .standard = 2048,
     .also = "max_position_embeddings",
     .write = HubWrite::IfMissing},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 50400},
    {.key = "rotary_dim", .use = HubUse::Own},
    hub_activation("activation_function", "gelu_new"),
    hub_norm_eps("layer_norm_epsilon", 1e-5),
    hub_init_std("initializer_range", 0.02),
    hub_rate("resid_pdrop", &ModelConfig::dropout, 0.0),
    {.key = "embd_pdrop", .use = HubUse::Same, .slot = &ModelConfig::dropout, .standard = 0.0},
    hub_rate("attn_pdrop", &ModelConfig::attention_dropout, 0.0),
    {.key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = false},
    must_have_been("scale_attn_weights", true,
                   "scores are divided by the root of a head's width here"),
};
constexpr std::span<const HubKey> kGptjBlocks[] = {kGptjKeys};

/// So many channels rotate; null: all.
void read_gptj(const HubConfig& from, ModelConfig& to) {
  const std::int64_t width = to.heads > 0 && to.width % to.heads == 0 ? to.head_dim() : 0;
  const bool null = from.find("rotary_dim") != nullptr && !from.has("rotary_dim");
  const std::int64_t turned = null                     ? width
                              : from.has("rotary_dim") ? from.whole("rotary_dim", 1, 1'000'000)
                                                       : 64;
  if (turned % 2 != 0) from.refuse("rotary_dim", "channels turn in pairs; it must be even");
  if (turned > width)
    from.refuse("rotary_dim", text("a head has ", width, " channels (n_embd ", to.width,
                                   ", n_head ", to.heads, ")"));
  to.rotary_share = static_cast<double>(turned) / static_cast<double>(width);
}

void write_gptj(const ModelConfig& from, HubJson& to) {
  to["rotary_dim"] = std::llround(from.rotary_share * static_cast<double>(from.head_dim()));
}

constexpr HubClass kGptjClasses[] = {
    {TaskHead::CausalLm, "GPTJForCausalLM"},
    {TaskHead::SequenceClassification, "GPTJForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubGptj = {
    .model_type = "gptj",
    .classes = kGptjClasses,
    .base_class = "GPTJModel",
    .family = &kGptj,
    .prefix = "transformer.",
    .names = kGptjNames,
    .ties = kGptjTies,
    .unread = kGptjUnread,
    .keys = kGptjBlocks,
    .read = read_gptj,
    .write = write_gptj,
    .grouped_queries = false,
    .ends_by_padding = true,
};

}  // namespace tessera
