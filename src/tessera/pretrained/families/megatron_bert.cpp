/// Megatron-LM's BERT as Hugging Face's folders have it: MegatronBertForPreTraining.

#include "tessera/base/error.h"
#include "tessera/pretrained/families/bert.h"

namespace tessera {

extern const ModelFamily kMegatronBert;

namespace {

constexpr HubName kMegatronBertBody[] = {
    {"embed.token.weight", "embeddings.word_embeddings.weight"},
    {"embed.position.weight", "embeddings.position_embeddings.weight"},
    {"embed.type.weight", "embeddings.token_type_embeddings.weight"},
    {"layers.#.norm1", "encoder.layer.#.attention.ln"},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.query", HubRows::Queries},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.key", HubRows::Keys},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.value", HubRows::Values},
    {"layers.#.attn.proj", "encoder.layer.#.attention.output.dense"},
    {"layers.#.norm2", "encoder.layer.#.ln"},
    {"layers.#.mlp.up", "encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.down", "encoder.layer.#.output.dense"},
    {"norm", "encoder.ln"},
};

constexpr auto kMegatronBertSizes =
    hub_encoder_keys({.width = 1024, .layers = 24, .heads = 16, .ffn_width = 4096});
constexpr HubKey kMegatronBertOwnKeys[] = {
    must_be("tie_word_embeddings", true, "the decoder is the token embedding here"),
    must_have_been("is_decoder", false, "tokens see both sides here"),
    must_have_been("add_cross_attention", false, "this family has no second stack"),
};
constexpr std::span<const HubKey> kMegatronBertBlocks[] = {kMegatronBertSizes, kMegatronBertOwnKeys,
                                                           kBertKeys<29056>};

void write_megatron_bert(const ModelConfig& from, HubJson&) {
  require(from.activation == "gelu", "export: activation is ", from.activation,
          ": transformers' MegatronBert has one activation for its layers and its head, and here ",
          "the head's is gelu");
}

constexpr HubClass kMegatronBertClasses[] = {
    {TaskHead::PreTraining, "MegatronBertForPreTraining"},
    {TaskHead::MaskedLm, "MegatronBertForMaskedLM"},
    {TaskHead::SequenceClassification, "MegatronBertForSequenceClassification"},
    {TaskHead::TokenClassification, "MegatronBertForTokenClassification"},
    {TaskHead::QuestionAnswering, "MegatronBertForQuestionAnswering"},
    {TaskHead::MultipleChoice, "MegatronBertForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubMegatronBert = {
    .model_type = "megatron-bert",
    .classes = kMegatronBertClasses,
    .base_class = "MegatronBertModel",
    .family = &kMegatronBert,
    .prefix = "bert.",
    .body = kMegatronBertBody,
    .names = kBertNames,
    .ties = kBertTies,
    .unread = kBertUnread,
    .keys = kMegatronBertBlocks,
    .write = write_megatron_bert,
};

}  // namespace tessera
