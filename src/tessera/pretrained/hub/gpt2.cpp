/// GPT-2 as Hugging Face's folders have it: GPT2LMHeadModel.

#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

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
    {.ours = "head.weight", .theirs = "lm_head.weight", .tasks = kCausalLm},
    {.ours = "score.weight", .theirs = "score.weight", .tasks = kSequenceClassification},
};

// Masks of attention, which older files hold, and a head that is tied.
constexpr std::string_view kGpt2Unread[] = {"h.*.attn.bias", "h.*.attn.masked_bias",
                                            "lm_head.weight"};

void read_gpt2(const HubConfig& from, ModelConfig& to) {
  to.width = from.count("n_embd", 768);
  to.layers = from.count("n_layer", 12);
  to.heads = from.count("n_head", 12);
  to.ffn_width = from.count("n_inner", 4 * to.width);
  to.positions = from.count("n_positions", 1024);
  to.vocabulary = from.count("vocab_size", 50257);
  to.norm_eps = from.number("layer_norm_epsilon", 1e-5);
  to.init_std = from.number("initializer_range", 0.02);
  to.dropout = from.same_rate({"resid_pdrop", "embd_pdrop"}, 0.1);
  to.attention_dropout = from.rate_beside("attn_pdrop", 0.1, to.dropout);
  to.tied_head = from.truth("tie_word_embeddings", true);
  from.require_word("activation_function", "gelu_new",
                    {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"});
  from.require_truth("scale_attn_weights", true,
                     "scores are divided by the root of the head width");
  from.require_truth("scale_attn_by_inverse_layer_idx", false,
                     "scores of all layers are scaled alike here");
  from.require_truth("add_cross_attention", false, "this family has no encoder");
}

void write_gpt2(const ModelConfig& from, HubJson& to) {
  to["n_embd"] = from.width;
  to["n_layer"] = from.layers;
  to["n_head"] = from.heads;
  to["n_inner"] = from.hidden();
  to["n_positions"] = from.most_positions();
  to["vocab_size"] = from.vocabulary;
  to["layer_norm_epsilon"] = from.norm_eps;
  to["initializer_range"] = from.init_std;
  for (const char* key : {"resid_pdrop", "embd_pdrop"}) to[key] = from.dropout;
  to["attn_pdrop"] = from.attention_rate();
  to["tie_word_embeddings"] = from.tied_head;
  to["activation_function"] = "gelu_new";
}

constexpr HubClass kGpt2Classes[] = {{kCausalLm, "GPT2LMHeadModel"},
                                     {kSequenceClassification, "GPT2ForSequenceClassification"}};

}  // namespace

constinit const HubFamily kHubGpt2 = {
    .model_type = "gpt2",
    .classes = kGpt2Classes,
    .family = &kGpt2,
    .prefix = "transformer.",
    .names = kGpt2Names,
    .unread = kGpt2Unread,
    .read = read_gpt2,
    .write = write_gpt2,
};

}  // namespace tessera
