/// BERT as Hugging Face's folders have it: BertForPreTraining.

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

extern const ModelFamily kBert;

namespace {

constexpr HubName kBertNames[] = {
    {.ours = "pooler",
     .theirs = "bert.pooler.dense",
     .heads = TaskHead::PreTraining | TaskHead::SequenceClassification},
    {.ours = "mlm.dense",
     .theirs = "cls.predictions.transform.dense",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "mlm.norm",
     .theirs = "cls.predictions.transform.LayerNorm",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "mlm.bias",
     .theirs = "cls.predictions.bias",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "nsp", .theirs = "cls.seq_relationship", .heads = TaskHead::PreTraining},
    {.ours = "classifier",
     .theirs = "classifier",
     .heads = TaskHead::SequenceClassification | TaskHead::TokenClassification},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .heads = TaskHead::QuestionAnswering},
};

constexpr HubTie kBertTies[] = {
    {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", false,
     TaskHead::PreTraining | TaskHead::MaskedLm},
    {"cls.predictions.bias", "cls.predictions.decoder.bias", false,
     TaskHead::PreTraining | TaskHead::MaskedLm}};

// Numbers of positions.
constexpr std::string_view kBertUnread[] = {"embeddings.position_ids"};

constexpr HubKey kBertKeys[] = {
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.1),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.1),
    kHubClassifierDropout,
    {.key = "max_position_embeddings", .slot = &ModelConfig::positions, .standard = 512},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 30522},
    must_be("type_vocab_size", 2, "a sample has two parts here"),
};
constexpr std::span<const HubKey> kBertBlocks[] = {kHubEncoderKeys, kHubTextEncoderKeys, kBertKeys};
// Of the first files.
constexpr std::string_view kBertHarmless =
    "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers "
    "pooler_size_per_head pooler_type";

void write_bert(const ModelConfig& from, HubJson&) {
  require(!from.residual_attention, "export: residual-attention is true: transformers' BERT does ",
          "not add the scores of the layer before");
}

constexpr HubClass kBertClasses[] = {
    {TaskHead::PreTraining, "BertForPreTraining"},
    {TaskHead::MaskedLm, "BertForMaskedLM"},
    {TaskHead::SequenceClassification, "BertForSequenceClassification"},
    {TaskHead::TokenClassification, "BertForTokenClassification"},
    {TaskHead::QuestionAnswering, "BertForQuestionAnswering"}};

}  // namespace

extern constinit const HubFamily kHubBert = {
    .model_type = "bert",
    .classes = kBertClasses,
    .base_class = "BertModel",
    .family = &kBert,
    .prefix = "bert.",
    .body = kHubEncoderBody,
    .names = kBertNames,
    .ties = kBertTies,
    .unread = kBertUnread,
    .keys = kBertBlocks,
    .harmless = kBertHarmless,
    .write = write_bert,
};

}  // namespace tessera
