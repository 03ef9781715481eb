/// BERT as Hugging Face's folders have it: BertForPreTraining.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

namespace {

constexpr HubName kBertNames[] = {
    {"embed.token.weight", "bert.embeddings.word_embeddings.weight"},
    {"embed.position.weight", "bert.embeddings.position_embeddings.weight"},
    {"embed.type.weight", "bert.embeddings.token_type_embeddings.weight"},
    {"embed.norm", "bert.embeddings.LayerNorm"},
    {"layers.#.attn.qkv", "bert.encoder.layer.#.attention.self.query", HubRows::Queries},
    {"layers.#.attn.qkv", "bert.encoder.layer.#.attention.self.key", HubRows::Keys},
    {"layers.#.attn.qkv", "bert.encoder.layer.#.attention.self.value", HubRows::Values},
    {"layers.#.attn.proj", "bert.encoder.layer.#.attention.output.dense"},
    {"layers.#.norm1", "bert.encoder.layer.#.attention.output.LayerNorm"},
    {"layers.#.mlp.up", "bert.encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.down", "bert.encoder.layer.#.output.dense"},
    {"layers.#.norm2", "bert.encoder.layer.#.output.LayerNorm"},
    {.ours = "pooler",
     .theirs = "bert.pooler.dense",
     .tasks = "pretraining sequence_classification"},
    {.ours = "mlm.dense",
     .theirs = "cls.predictions.transform.dense",
     .tasks = "pretraining masked_lm"},
    {.ours = "mlm.norm",
     .theirs = "cls.predictions.transform.LayerNorm",
     .tasks = "pretraining masked_lm"},
    {.ours = "mlm.bias", .theirs = "cls.predictions.bias", .tasks = "pretraining masked_lm"},
    {.ours = "nsp", .theirs = "cls.seq_relationship", .tasks = kPretraining},
    {.ours = "classifier",
     .theirs = "classifier",
     .tasks = "sequence_classification token_classification"},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .tasks = kQuestionAnswering},
};

constexpr HubTie kBertTies[] = {
    {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", false,
     "pretraining masked_lm"},
    {"cls.predictions.bias", "cls.predictions.decoder.bias", false, "pretraining masked_lm"}};

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

constexpr HubClass kBertClasses[] = {{kPretraining, "BertForPreTraining"},
                                     {kMaskedLm, "BertForMaskedLM"},
                                     {kSequenceClassification, "BertForSequenceClassification"},
                                     {kTokenClassification, "BertForTokenClassification"},
                                     {kQuestionAnswering, "BertForQuestionAnswering"}};

}  // namespace

constinit const HubFamily kHubBert = {
    .model_type = "bert",
    .classes = kBertClasses,
    .base_class = "BertModel",
    .family = &kBert,
    .prefix = "bert.",
    .names = kBertNames,
    .ties = kBertTies,
    .unread = kBertUnread,
    .keys = kBertBlocks,
    .harmless = kBertHarmless,
};

}  // namespace tessera
