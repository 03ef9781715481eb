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
    {.ours = "sequence_summary",
     .theirs = "sequence_summary.summary",
     .heads = TaskHead::MultipleChoice},
    {.ours = "mlm.dense", .theirs = "generator_predictions.dense", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.norm", .theirs = "generator_predictions.LayerNorm", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.bias", .theirs = "generator_lm_head.bias", .heads = TaskHead::MaskedLm},
};
constexpr auto kElectraNames = joined(kElectraOwn, kHubBlockHeads);

constexpr HubTie kElectraTies[] = {{"electra.embeddings.word_embeddings.weight",
                                    "generator_lm_head.weight", false, TaskHead::MaskedLm}};

// Numbers of positions.
constexpr std::string_view kElectraUnread[] = {"embeddings.position_ids"};

/// The head for choices has a rate of its own.
constexpr HubKey classifier_dropout_of_others() {
  HubKey out = kHubClassifierDropout;
  out.heads = TaskHead::PreTraining | TaskHead::MaskedLm | TaskHead::SequenceClassification |
              TaskHead::TokenClassification | TaskHead::QuestionAnswering | TaskHead::Body;
  return out;
}
constexpr HubKey of_choices(std::string_view key, std::string_view word) {
  return {.key = key,
          .use = HubUse::Must,
          .standard = word,
          .must = word,
          .words = word,
          .heads = TaskHead::MultipleChoice,
          .write = HubWrite::IfMissing};
}

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
    classifier_dropout_of_others(),
    {.key = "summary_last_dropout",
     .use = HubUse::Rate,
     .slot = &ModelConfig::classifier_dropout,
     .standard = 0.1,
     .heads = TaskHead::MultipleChoice},
    of_choices("summary_type", "first"),
    of_choices("summary_activation", "gelu"),
    {.key = "summary_use_proj",
     .use = HubUse::Must,
     .standard = true,
     .must = true,
     .why = "what the first token says goes through a product here",
     .heads = TaskHead::MultipleChoice,
     .write = HubWrite::IfMissing},
    must_be("type_vocab_size", 2, "a sample has two parts here"),
};
constexpr std::span<const HubKey> kElectraBlocks[] = {kElectraKeys, kHubTextEncoderKeys};
constexpr HubClass kElectraClasses[] = {
    {TaskHead::PreTraining, "ElectraForPreTraining"},
    {TaskHead::MaskedLm, "ElectraForMaskedLM"},
    {TaskHead::SequenceClassification, "ElectraForSequenceClassification"},
    {TaskHead::TokenClassification, "ElectraForTokenClassification"},
    {TaskHead::QuestionAnswering, "ElectraForQuestionAnswering"},
    {TaskHead::MultipleChoice, "ElectraForMultipleChoice"}};

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
};

}  // namespace tessera
