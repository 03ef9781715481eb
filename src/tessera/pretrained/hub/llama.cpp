/// LLaMA as Hugging Face's folders have it: LlamaForCausalLM.

#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

namespace {

constexpr HubName kLlamaNames[] = {
    {"embed.token.weight", "model.embed_tokens.weight"},
    {"layers.#.norm1.weight", "model.layers.#.input_layernorm.weight"},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.q_proj.weight", HubRows::Queries},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.k_proj.weight", HubRows::Keys},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.v_proj.weight", HubRows::Values},
    {"layers.#.attn.proj.weight", "model.layers.#.self_attn.o_proj.weight"},
    {"layers.#.norm2.weight", "model.layers.#.post_attention_layernorm.weight"},
    {"layers.#.mlp.gate.weight", "model.layers.#.mlp.gate_proj.weight"},
    {"layers.#.mlp.up.weight", "model.layers.#.mlp.up_proj.weight"},
    {"layers.#.mlp.down.weight", "model.layers.#.mlp.down_proj.weight"},
    {"norm.weight", "model.norm.weight"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .tasks = kCausalLm},
    {.ours = "score.weight", .theirs = "score.weight", .tasks = kSequenceClassification},
};

// Frequencies of positions, which older files hold, and a head that is tied.
constexpr std::string_view kLlamaUnread[] = {"layers.*.self_attn.rotary_emb.inv_freq",
                                             "lm_head.weight"};

/// Versions before 5 have the base at the top and scaled positions in rope_scaling, later ones both
/// in rope_parameters. Of a file with both, transformers takes rope_scaling.
double rope_base(const HubConfig& from) {
  const double standard = from.number("rope_theta", 10'000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!from.has(key) || from.json()[key].empty()) continue;
    const HubConfig rope(from.json()[key].dump(), text(from.path(), ": ", key));
    for (const char* type : {"type", "rope_type"}) rope.require_word(type, "default", {"default"});
    return rope.number("rope_theta", standard);
  }
  return standard;
}

void read_llama(const HubConfig& from, ModelConfig& to) {
  to.width = from.count("hidden_size", 4096);
  to.layers = from.count("num_hidden_layers", 32);
  to.heads = from.count("num_attention_heads", 32);
  to.kv_heads = from.count("num_key_value_heads", to.heads);
  to.ffn_width = from.count("intermediate_size", 11008);
  to.vocabulary = from.count("vocab_size", 32000);
  to.norm_eps = from.number("rms_norm_eps", 1e-6);
  to.init_std = from.number("initializer_range", 0.02);
  to.rope_base = rope_base(from);
  to.tied_head = from.truth("tie_word_embeddings", false);
  to.attention_dropout = from.rate_beside("attention_dropout", 0, to.dropout);
  from.require_word("hidden_act", "silu", {"silu"});
  from.require_truth("attention_bias", false, "linear layers have no biases here");
  from.require_truth("mlp_bias", false, "linear layers have no biases here");
  if (to.heads > 0)
    from.require_count("head_dim", to.width / to.heads, to.width / to.heads,
                       "heads are as wide as hidden_size / num_attention_heads here");
}

void write_llama(const ModelConfig& from, HubJson& to) {
  to["hidden_size"] = from.width;
  to["num_hidden_layers"] = from.layers;
  to["num_attention_heads"] = from.heads;
  to["num_key_value_heads"] = from.groups();
  to["head_dim"] = from.head_dim();
  to["intermediate_size"] = from.hidden();
  to["vocab_size"] = from.vocabulary;
  to["rms_norm_eps"] = from.norm_eps;
  to["initializer_range"] = from.init_std;
  // Both spellings: of version 4, and of version 5.
  to["rope_theta"] = from.rope_base;
  to["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", from.rope_base}};
  to["tie_word_embeddings"] = from.tied_head;
  to["attention_dropout"] = from.attention_rate();
  to["hidden_act"] = "silu";
  to["attention_bias"] = false;
  to["mlp_bias"] = false;
  // Where positions are rotary, a number only for the users of the file.
  if (!to.contains("max_position_embeddings")) to["max_position_embeddings"] = from.context;
}

constexpr HubClass kLlamaClasses[] = {{kCausalLm, "LlamaForCausalLM"},
                                      {kSequenceClassification, "LlamaForSequenceClassification"}};

}  // namespace

constinit const HubFamily kHubLlama = {
    .model_type = "llama",
    .classes = kLlamaClasses,
    .family = &kLlama,
    .prefix = "model.",
    .names = kLlamaNames,
    .unread = kLlamaUnread,
    .read = read_llama,
    .write = write_llama,
};

}  // namespace tessera
