#pragma once
/// What the folders of BERT and of Megatron-LM's have alike.

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

inline constexpr HubName kBertNames[] = {
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

inline constexpr HubTie kBertTies[] = {
    {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", false,
     TaskHead::PreTraining | TaskHead::MaskedLm},
    {"cls.predictions.bias", "cls.predictions.decoder.bias", false,
     TaskHead::PreTraining | TaskHead::MaskedLm}};

// Numbers of positions.
inline constexpr std::string_view kBertUnread[] = {"embeddings.position_ids"};

template <std::int64_t kVocabulary>
inline constexpr HubKey kBertKeys[] = {
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.1),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.1),
    {.key = "max_position_embeddings", .slot = &ModelConfig::positions, .standard = 512},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = kVocabulary},
    must_be("type_vocab_size", 2, "a sample has two parts here"),
};

}  // namespace tessera
