/// RoBERTa as Hugging Face's folders have it: RobertaForMaskedLM.

#include "tessera/base/error.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

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
    {.ours = "mlm.dense", .theirs = "lm_head.dense", .tasks = kMaskedLm},
    {.ours = "mlm.norm", .theirs = "lm_head.layer_norm", .tasks = kMaskedLm},
    {.ours = "mlm.bias", .theirs = "lm_head.bias", .tasks = kMaskedLm},
    {.ours = "classifier.dense", .theirs = "classifier.dense", .tasks = kSequenceClassification},
    {.ours = "classifier.out_proj",
     .theirs = "classifier.out_proj",
     .tasks = kSequenceClassification},
    {.ours = "classifier", .theirs = "classifier", .tasks = kTokenClassification},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .tasks = kQuestionAnswering},
};

// Numbers of positions, a head for other tasks, and what the token embedding and lm_head.bias hold.
constexpr std::string_view kRobertaUnread[] = {"embeddings.position_ids", "pooler.dense.*",
                                               "lm_head.decoder.*"};

/// Padding has row pad_token_id, 1, and tokens begin behind it.
constexpr std::int64_t kUnreadPositions = 2;

void read_roberta(const HubConfig& from, ModelConfig& to) {
  read_encoder(from, 0.1, to);
  to.classifier_dropout = read_classifier_dropout(from, "classifier_dropout", -1);
  to.positions = from.count("max_position_embeddings", 512) - kUnreadPositions;
  if (to.positions < 1)
    fail(Fault::Data, from.path(), ": max_position_embeddings is ", to.positions + kUnreadPositions,
         "; the first ", kUnreadPositions, " of these rows are not of tokens, so it must be more");
  to.vocabulary = from.count("vocab_size", 50265);
  from.require_count("pad_token_id", 1, 1, "positions count from 2 here, one behind padding's");
  from.require_word("position_embedding_type", "absolute", {"absolute"});
  from.require_count("type_vocab_size", 2, 1, "all tokens have one type here");
  from.require_truth("tie_word_embeddings", true, "the decoder is the token embedding here");
  from.require_truth("is_decoder", false, "tokens see both sides here");
}

void write_roberta(const ModelConfig& from, HubJson& to) {
  write_encoder(from, to);
  to["classifier_dropout"] = nullptr;
  if (from.classifier_dropout >= 0) to["classifier_dropout"] = from.classifier_dropout;
  to["max_position_embeddings"] = from.most_positions() + kUnreadPositions;
  to["vocab_size"] = from.vocabulary;
  to["pad_token_id"] = 1;
  to["type_vocab_size"] = 1;
  to["tie_word_embeddings"] = true;
}

constexpr HubClass kRobertaClasses[] = {
    {kMaskedLm, "RobertaForMaskedLM"},
    {kSequenceClassification, "RobertaForSequenceClassification"},
    {kTokenClassification, "RobertaForTokenClassification"},
    {kQuestionAnswering, "RobertaForQuestionAnswering"}};

}  // namespace

constinit const HubFamily kHubRoberta = {
    .model_type = "roberta",
    .classes = kRobertaClasses,
    .family = &kRoberta,
    .prefix = "roberta.",
    .names = kRobertaNames,
    .unread = kRobertaUnread,
    .read = read_roberta,
    .write = write_roberta,
};

}  // namespace tessera
