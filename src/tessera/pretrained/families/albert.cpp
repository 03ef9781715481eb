/// ALBERT as Hugging Face's folders have it: AlbertForPreTraining, with one group of layers.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

extern const ModelFamily kAlbert;

namespace {

// All layers have the weights of layers.0.
constexpr HubName kAlbertNames[] = {
    {"embed.token.weight", "albert.embeddings.word_embeddings.weight"},
    {"embed.position.weight", "albert.embeddings.position_embeddings.weight"},
    {"embed.type.weight", "albert.embeddings.token_type_embeddings.weight"},
    {"embed.norm", "albert.embeddings.LayerNorm"},
    {"embed.project", "albert.encoder.embedding_hidden_mapping_in"},
    {"layers.0.attn.qkv", "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query",
     HubRows::Queries},
    {"layers.0.attn.qkv", "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.key",
     HubRows::Keys},
    {"layers.0.attn.qkv", "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.value",
     HubRows::Values},
    {"layers.0.attn.proj", "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.dense"},
    {"layers.0.norm1", "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.LayerNorm"},
    {"layers.0.mlp.up", "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn"},
    {"layers.0.mlp.down", "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output"},
    {"layers.0.norm2",
     "albert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm"},
    {.ours = "pooler", .theirs = "albert.pooler", .heads = TaskHead::PreTraining | kHubTextLabels},
    {.ours = "mlm.dense",
     .theirs = "predictions.dense",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "mlm.norm",
     .theirs = "predictions.LayerNorm",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "mlm.bias",
     .theirs = "predictions.bias",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "sop", .theirs = "sop_classifier.classifier", .heads = TaskHead::PreTraining},
    {.ours = "classifier", .theirs = "classifier", .heads = kHubLabels},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .heads = TaskHead::QuestionAnswering},
};

constexpr HubTie kAlbertTies[] = {
    {"albert.embeddings.word_embeddings.weight", "predictions.decoder.weight", false,
     TaskHead::PreTraining | TaskHead::MaskedLm},
    {"predictions.bias", "predictions.decoder.bias", false,
     TaskHead::PreTraining | TaskHead::MaskedLm}};

// Numbers of positions.
constexpr std::string_view kAlbertUnread[] = {"embeddings.position_ids"};

constexpr HubKey kAlbertKeys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 4096},
    {.key = "embedding_size", .slot = &ModelConfig::embedding_width, .standard = 128},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 12},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 64},
    {.key = "intermediate_size", .slot = &ModelConfig::ffn_width, .standard = 16384},
    {.key = "max_position_embeddings", .slot = &ModelConfig::positions, .standard = 512},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 30000},
    hub_norm_eps("layer_norm_eps", 1e-12),
    hub_init_std("initializer_range", 0.02),
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.0),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.0),
    hub_rate("classifier_dropout_prob", &ModelConfig::classifier_dropout, 0.1),
    {.key = "hidden_act",
     .use = HubUse::Must,
     .standard = "gelu_new",
     .must = "gelu_new",
     .words = "gelu_new gelu_pytorch_tanh gelu_fast",
     .write = HubWrite::IfMissing},
    must_be("num_hidden_groups", 1, "all layers have the same weights here"),
    must_be("inner_group_num", 1, "a layer is one attention and one feed-forward here"),
    must_be("type_vocab_size", 2, "a sample has two parts here"),
};
constexpr std::span<const HubKey> kAlbertBlocks[] = {kAlbertKeys, kHubTextEncoderKeys};
// Of the first files.
constexpr std::string_view kAlbertHarmless =
    "net_structure_type gap_size num_memory_blocks down_scale_factor layers_to_keep";

constexpr HubClass kAlbertClasses[] = {
    {TaskHead::PreTraining, "AlbertForPreTraining"},
    {TaskHead::MaskedLm, "AlbertForMaskedLM"},
    {TaskHead::SequenceClassification, "AlbertForSequenceClassification"},
    {TaskHead::TokenClassification, "AlbertForTokenClassification"},
    {TaskHead::QuestionAnswering, "AlbertForQuestionAnswering"},
    {TaskHead::MultipleChoice, "AlbertForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubAlbert = {
    .model_type = "albert",
    .classes = kAlbertClasses,
    .base_class = "AlbertModel",
    .family = &kAlbert,
    .prefix = "albert.",
    .names = kAlbertNames,
    .ties = kAlbertTies,
    .unread = kAlbertUnread,
    .keys = kAlbertBlocks,
    .harmless = kAlbertHarmless,
};

}  // namespace tessera
