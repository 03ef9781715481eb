#pragma once
/// RoBERTa as Hugging Face's folders have it, under its names.

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

/// MPNet's too.
inline constexpr HubName kRobertaMaskedHead[] = {
    {.ours = "mlm.dense", .theirs = "lm_head.dense", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.norm", .theirs = "lm_head.layer_norm", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.bias", .theirs = "lm_head.bias", .heads = TaskHead::MaskedLm},
};
inline constexpr auto kRobertaHeads = joined(kRobertaMaskedHead, kHubBlockHeads);

/// Of rows with the prefix.
inline constexpr HubName kRobertaPooler[] = {
    {.ours = "pooler", .theirs = "pooler.dense", .heads = TaskHead::MultipleChoice}};
inline constexpr auto kRobertaBody = joined(kHubEncoderBody, kRobertaPooler);

inline constexpr HubTie kRobertaTies[] = {
    {"roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight", false,
     TaskHead::MaskedLm},
    {"lm_head.bias", "lm_head.decoder.bias", false, TaskHead::MaskedLm}};

// Numbers of positions, and a head for choices.
inline constexpr std::string_view kRobertaUnread[] = {"embeddings.position_ids", "pooler.dense.*"};

/// Padding has row pad_token_id, 1, of the table of positions, and tokens begin behind it.
inline constexpr HubKey kRobertaPositions = {.key = "max_position_embeddings",
                                             .slot = &ModelConfig::positions,
                                             .standard = 512,
                                             .behind = 2};

template <std::int64_t kVocabulary>
inline constexpr HubKey kRobertaKeys[] = {
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.1),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.1),
    kHubClassifierDropout,
    kRobertaPositions,
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = kVocabulary},
    must_be("pad_token_id", 1, "positions count from 2 here, one behind padding's"),
    {.key = "type_vocab_size",
     .use = HubUse::Must,
     .standard = 2,
     .must = 1,
     .why = "all tokens have one type here, so it must be 1"},
};
template <std::int64_t kVocabulary>
inline constexpr std::span<const HubKey> kRobertaBlocks[] = {kHubEncoderKeys, kHubTextEncoderKeys,
                                                             kRobertaKeys<kVocabulary>};

/// kVocabulary: what transformers takes where config.json lacks vocab_size.
template <std::int64_t kVocabulary>
constexpr HubFamily roberta_folders(const ModelFamily& family, std::string_view model_type,
                                    std::string_view base_class,
                                    std::span<const HubClass> classes) {
  return {.model_type = model_type,
          .classes = classes,
          .base_class = base_class,
          .family = &family,
          .prefix = "roberta.",
          .body = kRobertaBody,
          .names = kRobertaHeads,
          .ties = kRobertaTies,
          .unread = kRobertaUnread,
          .keys = kRobertaBlocks<kVocabulary>};
}

}  // namespace tessera
