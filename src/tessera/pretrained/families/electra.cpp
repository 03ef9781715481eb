/// ELECTRA as Hugging Face's folders have it: ElectraForPreTraining, which is the
/// discriminator, with heads for labels too; and the generator's ElectraForMaskedLM.

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

extern const ModelFamily kElectra;

namespace {

constexpr HubName kElectraOwn[] = {
    {.ours = "embed.project",
     .theirs = "electra.embeddings_project",
     .is_in = [](const ModelConfig& model) { return model.embedded() != model.width; }},
    {.ours = "rtd.dense",
     .theirs = "discriminator_predictions.dense",
     .heads = TaskHead::PreTraining},
    {.ours = "rtd.out",
     .theirs = "discriminator_predictions.dense_prediction",
     .heads = TaskHead::PreTraining},
    {.ours = "mlm.dense", .theirs = "generator_predictions.dense", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.norm", .theirs = "generator_predictions.LayerNorm", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.bias", .theirs = "generator_lm_head.bias", .heads = TaskHead::MaskedLm},
};
constexpr auto kElectraNames = joined(kElectraOwn, kHubBlockHeads);

constexpr HubTie kElectraTies[] = {{"electra.embeddings.word_embeddings.weight",
                                    "generator_lm_head.weight", false, TaskHead::MaskedLm}};

// Numbers of positions.
constexpr std::string_view kElectraUnread[] = {"embeddings.position_ids"};

constexpr HubKey kElectraKeys[] = {
    {.key = "embedding_size", .slot = &ModelConfig::embedding_width, .standard = 128},
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 256},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 12},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 4},
    {.key = "intermediate_size", .slot = &ModelConfig::ffn_width, .standard = 1024},
    {.key = "max_position_embeddings", .slot = &ModelConfig::positions, .standard = 512},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 30522},
    {.key = "hidden_act", .use = HubUse::Must, .standard = "gelu", .must = "gelu", .words = "gelu"},
    hub_norm_eps("layer_norm_eps", 1e-12),
    hub_init_std("initializer_range", 0.02),
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.1),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.1),
    kHubClassifierDropout,
    must_be("type_vocab_size", 2, "a sample has two parts here"),
};
constexpr std::span<const HubKey> kElectraBlocks[] = {kElectraKeys, kHubTextEncoderKeys};
// Of a head for multiple choice.
constexpr std::string_view kElectraHarmless =
    "summary_type summary_use_proj summary_activation summary_last_dropout";

constexpr HubClass kElectraClasses[] = {
    {TaskHead::PreTraining, "ElectraForPreTraining"},
    {TaskHead::MaskedLm, "ElectraForMaskedLM"},
    {TaskHead::SequenceClassification, "ElectraForSequenceClassification"},
    {TaskHead::TokenClassification, "ElectraForTokenClassification"},
    {TaskHead::QuestionAnswering, "ElectraForQuestionAnswering"}};

}  // namespace

extern constinit const HubFamily kHubElectra = {
    .model_type = "electra",
    .classes = kElectraClasses,
    .base_class = "ElectraModel",
    .family = &kElectra,
    .prefix = "electra.",
    .body = kHubEncoderBody,
    .names = kElectraNames,
    .ties = kElectraTies,
    .unread = kElectraUnread,
    .keys = kElectraBlocks,
    .harmless = kElectraHarmless,
};

}  // namespace tessera
