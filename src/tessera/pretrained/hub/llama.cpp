/// LLaMA as Hugging Face's folders have it: LlamaForCausalLM.

#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

namespace {

bool has_attention_bias(const ModelConfig& model) { return model.attention_bias; }
bool has_ffn_bias(const ModelConfig& model) { return model.ffn_bias; }

constexpr HubName kLlamaNames[] = {
    {"embed.token.weight", "model.embed_tokens.weight"},
    {"layers.#.norm1.weight", "model.layers.#.input_layernorm.weight"},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.q_proj.weight", HubRows::Queries},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.k_proj.weight", HubRows::Keys},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.v_proj.weight", HubRows::Values},
    {"layers.#.attn.proj.weight", "model.layers.#.self_attn.o_proj.weight"},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.q_proj.bias", HubRows::Queries,
     HubOrder::OutIn, has_attention_bias},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.k_proj.bias", HubRows::Keys,
     HubOrder::OutIn, has_attention_bias},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.v_proj.bias", HubRows::Values,
     HubOrder::OutIn, has_attention_bias},
    {.ours = "layers.#.attn.proj.bias",
     .theirs = "model.layers.#.self_attn.o_proj.bias",
     .is_in = has_attention_bias},
    {"layers.#.norm2.weight", "model.layers.#.post_attention_layernorm.weight"},
    {"layers.#.mlp.gate.weight", "model.layers.#.mlp.gate_proj.weight"},
    {"layers.#.mlp.up.weight", "model.layers.#.mlp.up_proj.weight"},
    {"layers.#.mlp.down.weight", "model.layers.#.mlp.down_proj.weight"},
    {.ours = "layers.#.mlp.gate.bias",
     .theirs = "model.layers.#.mlp.gate_proj.bias",
     .is_in = has_ffn_bias},
    {.ours = "layers.#.mlp.up.bias",
     .theirs = "model.layers.#.mlp.up_proj.bias",
     .is_in = has_ffn_bias},
    {.ours = "layers.#.mlp.down.bias",
     .theirs = "model.layers.#.mlp.down_proj.bias",
     .is_in = has_ffn_bias},
    {"norm.weight", "model.norm.weight"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    {.ours = "score.weight", .theirs = "score.weight", .heads = TaskHead::SequenceClassification},
};

constexpr HubTie kLlamaTies[] = {
    {"model.embed_tokens.weight", "lm_head.weight", true, TaskHead::CausalLm}};

// Frequencies of positions, which older files hold.
constexpr std::string_view kLlamaUnread[] = {"layers.*.self_attn.rotary_emb.inv_freq"};

constexpr HubKey kLlamaKeys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 4096},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 32},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 32},
    {.key = "num_key_value_heads", .slot = &ModelConfig::kv_heads, .standard = 0, .null = 0},
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 0, .null = 0},
    {.key = "intermediate_size", .slot = &ModelConfig::ffn_width, .standard = 11008},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 32000},
    hub_norm_eps("rms_norm_eps", 1e-6),
    hub_init_std("initializer_range", 0.02),
    hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.0),
    {.key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = false},
    {.key = "attention_bias", .slot = &ModelConfig::attention_bias, .standard = false},
    {.key = "mlp_bias", .slot = &ModelConfig::ffn_bias, .standard = false},
    {.key = "hidden_act", .use = HubUse::Must, .standard = "silu", .must = "silu", .words = "silu"},
    // Where positions are rotary, a number only for the users of the file.
    {.key = "max_position_embeddings",
     .slot = &ModelConfig::context,
     .standard = 2048,
     .write = HubWrite::IfMissing},
    {.key = "rope_theta", .use = HubUse::Own},
    {.key = "rope_scaling", .use = HubUse::Own},
    {.key = "rope_parameters", .use = HubUse::Own},
    must_have_been("partial_rotary_factor", 1.0, "all channels of a head are rotated here"),
};
constexpr std::span<const HubKey> kLlamaBlocks[] = {kLlamaKeys};

/// Versions before 5 have the base at the top and scaled positions in rope_scaling, later ones both
/// in rope_parameters. Of a file with both, transformers takes rope_scaling.
void read_llama_rope(const HubConfig& from, ModelConfig& to) {
  const auto base = [](const HubConfig& of, double standard) {
    return of.find("rope_theta") == nullptr ? standard : of.number("rope_theta", 1, 1e12);
  };
  to.rope_base = base(from, 10'000);
  if (to.heads > 0 && to.width % to.heads == 0 && to.head_width == to.width / to.heads)
    to.head_width = 0;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!from.has(key)) continue;
    if (!from.json()[key].is_object()) from.refuse(key, "it must be an object, or null");
    if (from.json()[key].empty()) continue;
    const HubConfig rope(from.json()[key].dump(), text(from.path(), ": ", key));
    for (const char* type : {"type", "rope_type"}) {
      if (rope.find(type) != nullptr && rope.word(type) != "default")
        rope.refuse(type, "positions are rotated as they are here, which is called default");
    }
    if (rope.find("partial_rotary_factor") != nullptr &&
        rope.number("partial_rotary_factor", 0, 1) != 1)
      rope.refuse("partial_rotary_factor", "all channels of a head are rotated here");
    to.rope_base = base(rope, to.rope_base);
    return;
  }
}

/// Both spellings: of version 4, and of version 5.
void write_llama_rope(const ModelConfig& from, HubJson& to) {
  to["rope_theta"] = from.rope_base;
  to["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", from.rope_base}};
}

constexpr HubClass kLlamaClasses[] = {
    {TaskHead::CausalLm, "LlamaForCausalLM"},
    {TaskHead::SequenceClassification, "LlamaForSequenceClassification"}};

}  // namespace

constinit const HubFamily kHubLlama = {
    .model_type = "llama",
    .classes = kLlamaClasses,
    .base_class = "LlamaModel",
    .family = &kLlama,
    .prefix = "model.",
    .names = kLlamaNames,
    .ties = kLlamaTies,
    .unread = kLlamaUnread,
    .keys = kLlamaBlocks,
    .harmless = "pretraining_tp",
    .read = read_llama_rope,
    .write = write_llama_rope,
    .grouped_queries = true,
    .ends_by_padding = true,
};

}  // namespace tessera
