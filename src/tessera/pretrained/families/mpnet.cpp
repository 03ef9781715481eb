/// MPNet as Hugging Face's folders have it.

#include "tessera/pretrained/families/roberta.h"

namespace tessera {

extern const ModelFamily kMpnet;

namespace {

constexpr HubName kMpnetBody[] = {
    {"embed.token.weight", "embeddings.word_embeddings.weight"},
    {"embed.position.weight", "embeddings.position_embeddings.weight"},
    {"embed.norm", "embeddings.LayerNorm"},
    {"embed.relative.weight", "encoder.relative_attention_bias.weight"},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.attn.q", HubRows::Queries},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.attn.k", HubRows::Keys},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.attn.v", HubRows::Values},
    {"layers.#.attn.proj", "encoder.layer.#.attention.attn.o"},
    {"layers.#.norm1", "encoder.layer.#.attention.LayerNorm"},
    {"layers.#.mlp.up", "encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.down", "encoder.layer.#.output.dense"},
    {"layers.#.norm2", "encoder.layer.#.output.LayerNorm"},
    kRobertaPooler[0],
};

constexpr HubTie kMpnetTies[] = {
    {"mpnet.embeddings.word_embeddings.weight", "lm_head.decoder.weight", false,
     TaskHead::MaskedLm},
    {"lm_head.bias", "lm_head.decoder.bias", false, TaskHead::MaskedLm}};

constexpr HubKey kMpnetKeys[] = {
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.1),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.1),
    kRobertaPositions,
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 30527},
    must_be("relative_attention_num_buckets", 32, "transformers has so many kinds of distances"),
    must_be("tie_word_embeddings", true, "the decoder is the token embedding here"),
};
constexpr std::span<const HubKey> kMpnetBlocks[] = {kHubEncoderKeys, kMpnetKeys};

constexpr HubClass kMpnetClasses[] = {
    {TaskHead::MaskedLm, "MPNetForMaskedLM"},
    {TaskHead::SequenceClassification, "MPNetForSequenceClassification"},
    {TaskHead::TokenClassification, "MPNetForTokenClassification"},
    {TaskHead::QuestionAnswering, "MPNetForQuestionAnswering"},
    {TaskHead::MultipleChoice, "MPNetForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubMpnet = {
    .model_type = "mpnet",
    .classes = kMpnetClasses,
    .base_class = "MPNetModel",
    .family = &kMpnet,
    .prefix = "mpnet.",
    .body = kMpnetBody,
    .names = kRobertaHeads,
    .ties = kMpnetTies,
    .unread = kRobertaUnread,
    .keys = kMpnetBlocks,
};

}  // namespace tessera
