#pragma once
/// What the folders of BERT and of Megatron-LM's have alike.

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

inline constexpr TaskHead kBertPredictions = TaskHead::PreTraining | TaskHead::MaskedLm;
inline constexpr HubName kBertPooler[] = {
    {.ours = "pooler",
     .theirs = "bert.pooler.dense",
     .heads = TaskHead::PreTraining | kHubTextLabels},
    {.ours = "nsp", .theirs = "cls.seq_relationship", .heads = TaskHead::PreTraining},
};
inline constexpr auto kBertNames =
    joined(kBertPooler, hub_prediction_names(kBertPredictions), kHubLabelHeads);

inline constexpr HubTie kBertTies[] = {
    {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", false,
     kBertPredictions},
    {"cls.predictions.bias", "cls.predictions.decoder.bias", false, kBertPredictions}};

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
