/// DistilBERT as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

extern const ModelFamily kDistilbert;

namespace {

constexpr HubName kDistilbertBody[] = {
    {"embed.token.weight", "embeddings.word_embeddings.weight"},
    {"embed.position.weight", "embeddings.position_embeddings.weight"},
    {"embed.norm", "embeddings.LayerNorm"},
    {"layers.#.attn.qkv", "transformer.layer.#.attention.q_lin", HubRows::Queries},
    {"layers.#.attn.qkv", "transformer.layer.#.attention.k_lin", HubRows::Keys},
    {"layers.#.attn.qkv", "transformer.layer.#.attention.v_lin", HubRows::Values},
    {"layers.#.attn.proj", "transformer.layer.#.attention.out_lin"},
    {"layers.#.norm1", "transformer.layer.#.sa_layer_norm"},
    {"layers.#.mlp.up", "transformer.layer.#.ffn.lin1"},
    {"layers.#.mlp.down", "transformer.layer.#.ffn.lin2"},
    {"layers.#.norm2", "transformer.layer.#.output_layer_norm"},
};

constexpr HubName kDistilbertHeads[] = {
    {.ours = "mlm.dense", .theirs = "vocab_transform", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.norm", .theirs = "vocab_layer_norm", .heads = TaskHead::MaskedLm},
    {.ours = "mlm.bias", .theirs = "vocab_projector.bias", .heads = TaskHead::MaskedLm},
    {.ours = "pre_classifier", .theirs = "pre_classifier", .heads = kHubTextLabels},
    {.ours = "classifier", .theirs = "classifier", .heads = kHubLabels},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .heads = TaskHead::QuestionAnswering},
};

constexpr HubTie kDistilbertTies[] = {{"distilbert.embeddings.word_embeddings.weight",
                                       "vocab_projector.weight", false, TaskHead::MaskedLm}};

// Numbers of positions.
constexpr std::string_view kDistilbertUnread[] = {"embeddings.position_ids"};

constexpr HubKey kDistilbertKeys[] = {
    {.key = "dim", .slot = &ModelConfig::width, .standard = 768, .also = "hidden_size"},
    {.key = "n_layers", .slot = &ModelConfig::layers, .standard = 6, .also = "num_hidden_layers"},
    {.key = "n_heads", .slot = &ModelConfig::heads, .standard = 12, .also = "num_attention_heads"},
    {.key = "hidden_dim", .slot = &ModelConfig::ffn_width, .standard = 3072},
    {.key = "max_position_embeddings", .slot = &ModelConfig::positions, .standard = 512},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 30522},
    {.key = "activation", .use = HubUse::Must, .standard = "gelu", .must = "gelu", .words = "gelu"},
    hub_init_std("initializer_range", 0.02),
    hub_rate("dropout", &ModelConfig::dropout, 0.1),
    hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.1),
    // That of hidden layers stands before the classes of tokens.
    {.key = "seq_classif_dropout",
     .use = HubUse::Rate,
     .slot = &ModelConfig::classifier_dropout,
     .standard = 0.2,
     .heads = kHubTextLabels},
    {.key = "qa_dropout",
     .use = HubUse::Rate,
     .slot = &ModelConfig::classifier_dropout,
     .standard = 0.1,
     .heads = TaskHead::QuestionAnswering},
    must_be("sinusoidal_pos_embds", false, "positions are learned here"),
    must_be("tie_word_embeddings", true, "the decoder is the token embedding here"),
};
constexpr std::span<const HubKey> kDistilbertBlocks[] = {kDistilbertKeys};

constexpr HubClass kDistilbertClasses[] = {
    {TaskHead::MaskedLm, "DistilBertForMaskedLM"},
    {TaskHead::SequenceClassification, "DistilBertForSequenceClassification"},
    {TaskHead::TokenClassification, "DistilBertForTokenClassification"},
    {TaskHead::QuestionAnswering, "DistilBertForQuestionAnswering"},
    {TaskHead::MultipleChoice, "DistilBertForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubDistilbert = {
    .model_type = "distilbert",
    .classes = kDistilbertClasses,
    .base_class = "DistilBertModel",
    .family = &kDistilbert,
    .prefix = "distilbert.",
    .body = kDistilbertBody,
    .names = kDistilbertHeads,
    .ties = kDistilbertTies,
    .unread = kDistilbertUnread,
    .keys = kDistilbertBlocks,
    .harmless = "tie_weights_",
};

}  // namespace tessera
