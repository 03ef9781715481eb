/// RoBERTa as Hugging Face's folders have it: RobertaForMaskedLM.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

extern const ModelFamily kRoberta;

namespace {

constexpr HubName kRobertaNames[] = {
    {"embed.token.weight", "roberta.embeddings.word_embeddings.weight"},
    {"embed.position.weight", "roberta.embeddings.position_embeddings.weight"},
    {"embed.type.weight", "roberta.embeddings.token_type_embeddings.weight"},
    {"embed.norm", "roberta.embeddings.LayerNorm"},
    {"layers.#.attn.qkv", "roberta.encoder.layer.#.attention.self.query", HubRows::Queries},
    {"layers.#.attn.qkv", "roberta.encoder.layer.#.attention.self.key", HubRows::Keys},
    {"layers.#.attn.qkv", "roberta.encoder.layer.#.attention.self.value", HubRows::Values},
    {"layers.#.attn.proj", "roberta.encoder.layer.#.attention.output.dense"},
    {"layers.#.norm1", "roberta.encoder.layer.#.attention.output.LayerNorm"},
    {"layers.#.mlp.up", "roberta.encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.down", "roberta.encoder.layer.#.output.dense"},
    {"layers.#.norm2", "roberta.encoder.layer.#.output.LayerNorm"},
    {.ours = "mlm.dense", .theirs = "lm_head.dense", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.norm", .theirs = "lm_head.layer_norm", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.bias", .theirs = "lm_head.bias", .heads = TaskHead::MaskedLm},
    {.ours = "classifier.dense",
     .theirs = "classifier.dense",
     .heads = TaskHead::SequenceClassification},
    {.ours = "classifier.out_proj",
     .theirs = "classifier.out_proj",
     .heads = TaskHead::SequenceClassification},
    {.ours = "classifier", .theirs = "classifier", .heads = TaskHead::TokenClassification},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .heads = TaskHead::QuestionAnswering},
};

constexpr HubTie kRobertaTies[] = {
    {"roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight", false,
     TaskHead::MaskedLm},
    {"lm_head.bias", "lm_head.decoder.bias", false, TaskHead::MaskedLm}};

// Numbers of positions, and a head for other tasks.
constexpr std::string_view kRobertaUnread[] = {"embeddings.position_ids", "pooler.dense.*"};

/// Padding has row pad_token_id, 1, and tokens begin behind it.
constexpr std::int64_t kUnreadPositions = 2;

constexpr HubKey kRobertaKeys[] = {
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.1),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.1),
    kHubClassifierDropout,
    {.key = "max_position_embeddings",
     .slot = &ModelConfig::positions,
     .standard = 512,
     .behind = kUnreadPositions},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 50265},
    must_be("pad_token_id", 1, "positions count from 2 here, one behind padding's"),
    {.key = "type_vocab_size",
     .use = HubUse::Must,
     .standard = 2,
     .must = 1,
     .why = "all tokens have one type here, so it must be 1"},
};
constexpr std::span<const HubKey> kRobertaBlocks[] = {kHubEncoderKeys, kHubTextEncoderKeys,
                                                      kRobertaKeys};

constexpr HubClass kRobertaClasses[] = {
    {TaskHead::MaskedLm, "RobertaForMaskedLM"},
    {TaskHead::SequenceClassification, "RobertaForSequenceClassification"},
    {TaskHead::TokenClassification, "RobertaForTokenClassification"},
    {TaskHead::QuestionAnswering, "RobertaForQuestionAnswering"}};

}  // namespace

extern constinit const HubFamily kHubRoberta = {
    .model_type = "roberta",
    .classes = kRobertaClasses,
    .base_class = "RobertaModel",
    .family = &kRoberta,
    .prefix = "roberta.",
    .names = kRobertaNames,
    .ties = kRobertaTies,
    .unread = kRobertaUnread,
    .keys = kRobertaBlocks,
};

}  // namespace tessera
