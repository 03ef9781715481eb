/// ModernBERT as Hugging Face's folders have it: queries, keys and values in one tensor, gate above
/// up, and a head whose first product all classes share.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kModernbert;

namespace {

constexpr HubName kModernbertBody[] = {
    {"embed.token.weight", "embeddings.tok_embeddings.weight"},
    {"embed.norm.weight", "embeddings.norm.weight"},
    {.ours = "layers.#.norm1.weight", .theirs = "layers.#.attn_norm.weight", .first = 1},
    {"layers.#.attn.qkv.weight", "layers.#.attn.Wqkv.weight", HubRows::Fused},
    {"layers.#.attn.qkv.bias", "layers.#.attn.Wqkv.bias", HubRows::Fused, HubOrder::OutIn,
     has_qkv_bias},
    {"layers.#.attn.proj.weight", "layers.#.attn.Wo.weight"},
    {.ours = "layers.#.attn.proj.bias", .theirs = "layers.#.attn.Wo.bias", .is_in = has_proj_bias},
    {"layers.#.norm2.weight", "layers.#.mlp_norm.weight"},
    {"layers.#.mlp.gate.weight", "layers.#.mlp.Wi.weight", HubRows::UpperHalf},
    {"layers.#.mlp.up.weight", "layers.#.mlp.Wi.weight", HubRows::LowerHalf},
    {"layers.#.mlp.gate.bias", "layers.#.mlp.Wi.bias", HubRows::UpperHalf, HubOrder::OutIn,
     has_ffn_bias},
    {"layers.#.mlp.up.bias", "layers.#.mlp.Wi.bias", HubRows::LowerHalf, HubOrder::OutIn,
     has_ffn_bias},
    {"layers.#.mlp.down.weight", "layers.#.mlp.Wo.weight"},
    {.ours = "layers.#.mlp.down.bias", .theirs = "layers.#.mlp.Wo.bias", .is_in = has_ffn_bias},
    {"norm.weight", "final_norm.weight"},
};

constexpr TaskHead kModernbertLabels = TaskHead::SequenceClassification |
                                       TaskHead::TokenClassification | TaskHead::QuestionAnswering |
                                       TaskHead::MultipleChoice;
constexpr TaskHead kModernbertHeads = TaskHead::MaskedLm | kModernbertLabels;
constexpr HubName kModernbertNames[] = {
    {.ours = "head.dense.weight", .theirs = "head.dense.weight", .heads = kModernbertHeads},
    {.ours = "head.norm.weight", .theirs = "head.norm.weight", .heads = kModernbertHeads},
    {.ours = "mlm.bias", .theirs = "decoder.bias", .heads = TaskHead::MaskedLm},
    {.ours = "classifier", .theirs = "classifier", .heads = kModernbertLabels},
};

constexpr HubTie kModernbertTies[] = {
    {"model.embeddings.tok_embeddings.weight", "decoder.weight", false, TaskHead::MaskedLm}};

constexpr HubKey kModernbertKeys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 768},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 22},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 12},
    {.key = "intermediate_size", .slot = &ModelConfig::ffn_width, .standard = 1152},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 50368},
    // Where positions are rotary, a number only for the users of the file.
    {.key = "max_position_embeddings",
     .slot = &ModelConfig::context,
     .standard = 8192,
     .write = HubWrite::IfMissing},
    hub_norm_eps("norm_eps", 1e-5),
    hub_init_std("initializer_range", 0.02),
    hub_activation("hidden_activation", "gelu"),
    hub_activation("classifier_activation", "gelu"),
    kHubAttentionBias,
    {.key = "mlp_bias", .slot = &ModelConfig::ffn_bias, .standard = false},
    must_be("norm_bias", false, "norms have no biases here"),
    must_be("decoder_bias", true, "the decoder has a bias here"),
    must_be("classifier_bias", false, "the head's first product has no bias here"),
    must_be("tie_word_embeddings", true, "the decoder is the token embedding here"),
    hub_rate("embedding_dropout", &ModelConfig::dropout, 0.0),
    must_be("mlp_dropout", 0.0, "dropout of feed-forward parts stands behind them here"),
    must_be("attention_dropout", 0.0, "what attention adds has the rate of embeddings here"),
    hub_rate("classifier_dropout", &ModelConfig::classifier_dropout, 0.0),
    {.key = "classifier_pooling",
     .slot = &ModelConfig::pooling,
     .standard = kFirstPooling,
     .words = "cls mean"},
    {.key = "local_attention", .use = HubUse::Own},
    {.key = "sliding_window", .use = HubUse::Own},
    {.key = "layer_types", .use = HubUse::Own},
    {.key = "global_attn_every_n_layers", .use = HubUse::Own},
    {.key = "rope_parameters", .use = HubUse::Own},
    {.key = "rope_scaling", .use = HubUse::Own},
    {.key = "global_rope_theta", .use = HubUse::Own},
    {.key = "local_rope_theta", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kModernbertBlocks[] = {kModernbertKeys};
// First values, how a program computes, and of a model that is none of these.
constexpr std::string_view kModernbertHarmless =
    "initializer_cutoff_factor deterministic_flash_attn reference_compile repad_logits_with_grad "
    "sparse_prediction sparse_pred_ignore_index position_embedding_type cls_token_id "
    "layer_norm_eps";

constexpr HubRotaryBases kModernbertBases = {"global_rope_theta", "local_rope_theta", 160'000};

void read_modernbert(const HubConfig& from, ModelConfig& to) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto whole = [&](std::string_view key, std::int64_t least, std::int64_t standard) {
    return from.has(key) ? from.whole(key, least, kMost) : standard;
  };
  if (from.has("rope_scaling"))
    from.refuse("rope_scaling", "positions of layers with windows are not scaled here");
  // Half of it is on each side, unless the other key says how many.
  to.window = whole("sliding_window", 0, whole("local_attention", 0, 128) / 2) + 1;
  to.global_every = whole("global_attn_every_n_layers", 1, 3);
  read_rotary_of_kinds(from, to, kModernbertBases);
  if (from.has("layer_types"))
    return read_layer_types(from, to, "local_attention says how wide windows are");
  if (to.global_every == 1) to.global_every = to.window = 0;
}

void write_modernbert(const ModelConfig& from, HubJson& to) {
  write_rotary_of_kinds(from, to, kModernbertBases);
  write_layer_types(from, to);
  to.erase("sliding_window");
  if (from.window > 0) to["local_attention"] = 2 * (from.window - 1);
  if (from.window == 0 || from.global_every > 0)
    to["global_attn_every_n_layers"] = from.window == 0 ? 1 : from.global_every;
}

constexpr HubClass kModernbertClasses[] = {
    {TaskHead::MaskedLm, "ModernBertForMaskedLM"},
    {TaskHead::SequenceClassification, "ModernBertForSequenceClassification"},
    {TaskHead::TokenClassification, "ModernBertForTokenClassification"},
    {TaskHead::QuestionAnswering, "ModernBertForQuestionAnswering"},
    {TaskHead::MultipleChoice, "ModernBertForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubModernbert = {
    .model_type = "modernbert",
    .classes = kModernbertClasses,
    .base_class = "ModernBertModel",
    .family = &kModernbert,
    .prefix = "model.",
    .body = kModernbertBody,
    .names = kModernbertNames,
    .ties = kModernbertTies,
    .keys = kModernbertBlocks,
    .harmless = kModernbertHarmless,
    .read = read_modernbert,
    .write = write_modernbert,
};

}  // namespace tessera
