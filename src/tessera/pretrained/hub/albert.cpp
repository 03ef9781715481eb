/// ALBERT as Hugging Face's folders have it: AlbertForPreTraining, with one group of layers.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

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
    {.ours = "pooler", .theirs = "albert.pooler", .tasks = "pretraining sequence_classification"},
    {.ours = "mlm.dense", .theirs = "predictions.dense", .tasks = "pretraining masked_lm"},
    {.ours = "mlm.norm", .theirs = "predictions.LayerNorm", .tasks = "pretraining masked_lm"},
    {.ours = "mlm.bias", .theirs = "predictions.bias", .tasks = "pretraining masked_lm"},
    {.ours = "sop", .theirs = "sop_classifier.classifier", .tasks = kPretraining},
    {.ours = "classifier",
     .theirs = "classifier",
     .tasks = "sequence_classification token_classification"},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .tasks = kQuestionAnswering},
};

// Numbers of positions, and what the token embedding and predictions.bias hold.
constexpr std::string_view kAlbertUnread[] = {"embeddings.position_ids", "predictions.decoder.*"};

void read_albert(const HubConfig& from, ModelConfig& to) {
  to.width = from.count("hidden_size", 4096);
  to.embedding_width = from.count("embedding_size", 128);
  to.layers = from.count("num_hidden_layers", 12);
  to.heads = from.count("num_attention_heads", 64);
  to.ffn_width = from.count("intermediate_size", 16384);
  to.positions = from.count("max_position_embeddings", 512);
  to.vocabulary = from.count("vocab_size", 30000);
  to.norm_eps = from.number("layer_norm_eps", 1e-12);
  to.init_std = from.number("initializer_range", 0.02);
  to.classifier_dropout = read_classifier_dropout(from, "classifier_dropout_prob", 0.1);
  to.dropout = from.same_rate({"hidden_dropout_prob"}, 0);
  to.attention_dropout = from.rate_beside("attention_probs_dropout_prob", 0, to.dropout);
  from.require_count("num_hidden_groups", 1, 1, "all layers have the same weights here");
  from.require_count("inner_group_num", 1, 1, "a layer is one attention and one feed-forward here");
  from.require_word("hidden_act", "gelu_new", {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"});
  from.require_word("position_embedding_type", "absolute", {"absolute"});
  from.require_count("type_vocab_size", 2, 2, "a sample has two parts here");
  from.require_truth("tie_word_embeddings", true, "the decoder is the token embedding here");
}

void write_albert(const ModelConfig& from, HubJson& to) {
  to["hidden_size"] = from.width;
  to["embedding_size"] = from.embedded();
  to["num_hidden_layers"] = from.layers;
  to["num_attention_heads"] = from.heads;
  to["intermediate_size"] = from.hidden();
  to["max_position_embeddings"] = from.most_positions();
  to["vocab_size"] = from.vocabulary;
  to["layer_norm_eps"] = from.norm_eps;
  to["initializer_range"] = from.init_std;
  to["hidden_dropout_prob"] = from.dropout;
  to["attention_probs_dropout_prob"] = from.attention_rate();
  to["classifier_dropout_prob"] =
      from.classifier_dropout < 0 ? from.dropout : from.classifier_dropout;
  to["num_hidden_groups"] = 1;
  to["inner_group_num"] = 1;
  to["hidden_act"] = "gelu_new";
  to["type_vocab_size"] = 2;
  to["tie_word_embeddings"] = true;
}

constexpr HubClass kAlbertClasses[] = {{kPretraining, "AlbertForPreTraining"},
                                       {kMaskedLm, "AlbertForMaskedLM"},
                                       {kSequenceClassification, "AlbertForSequenceClassification"},
                                       {kTokenClassification, "AlbertForTokenClassification"},
                                       {kQuestionAnswering, "AlbertForQuestionAnswering"}};

}  // namespace

constinit const HubFamily kHubAlbert = {
    .model_type = "albert",
    .classes = kAlbertClasses,
    .family = &kAlbert,
    .prefix = "albert.",
    .names = kAlbertNames,
    .unread = kAlbertUnread,
    .read = read_albert,
    .write = write_albert,
};

}  // namespace tessera
