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

// Numbers of positions, and what the token embedding and cls.predictions.bias hold.
constexpr std::string_view kBertUnread[] = {"embeddings.position_ids", "cls.predictions.decoder.*"};

void read_bert(const HubConfig& from, ModelConfig& to) {
  read_encoder(from, 0.1, to);
  to.classifier_dropout = read_classifier_dropout(from, "classifier_dropout", -1);
  to.positions = from.count("max_position_embeddings", 512);
  to.vocabulary = from.count("vocab_size", 30522);
  from.require_word("position_embedding_type", "absolute", {"absolute"});
  from.require_count("type_vocab_size", 2, 2, "a sample has two parts here");
  from.require_truth("tie_word_embeddings", true, "the decoder is the token embedding here");
  from.require_truth("is_decoder", false, "tokens see both sides here");
}

void write_bert(const ModelConfig& from, HubJson& to) {
  write_encoder(from, to);
  to["classifier_dropout"] = nullptr;
  if (from.classifier_dropout >= 0) to["classifier_dropout"] = from.classifier_dropout;
  to["max_position_embeddings"] = from.most_positions();
  to["vocab_size"] = from.vocabulary;
  to["type_vocab_size"] = 2;
  to["tie_word_embeddings"] = true;
}

constexpr HubClass kBertClasses[] = {{kPretraining, "BertForPreTraining"},
                                     {kMaskedLm, "BertForMaskedLM"},
                                     {kSequenceClassification, "BertForSequenceClassification"},
                                     {kTokenClassification, "BertForTokenClassification"},
                                     {kQuestionAnswering, "BertForQuestionAnswering"}};

}  // namespace

constinit const HubFamily kHubBert = {
    .model_type = "bert",
    .classes = kBertClasses,
    .family = &kBert,
    .prefix = "bert.",
    .names = kBertNames,
    .unread = kBertUnread,
    .read = read_bert,
    .write = write_bert,
};

}  // namespace tessera
