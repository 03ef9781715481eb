/// BERT as Hugging Face's folders have it: BertForPreTraining.

#include "tessera/pretrained/families/bert.h"

namespace tessera {

extern const ModelFamily kBert;

namespace {

constexpr HubKey kBertOwnKeys[] = {kHubClassifierDropout};
constexpr std::span<const HubKey> kBertBlocks[] = {kHubEncoderKeys, kHubTextEncoderKeys,
                                                   kBertKeys<30522>, kBertOwnKeys};
// Of the first files.
constexpr std::string_view kBertHarmless =
    "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers "
    "pooler_size_per_head pooler_type";

void write_bert(const ModelConfig& from, HubJson&) {
  require(!from.residual_attention, "export: residual-attention is true: transformers' BERT does ",
          "not add the scores of the layer before");
}

constexpr HubClass kBertClasses[] = {
    {TaskHead::PreTraining, "BertForPreTraining"},
    {TaskHead::MaskedLm, "BertForMaskedLM"},
    {TaskHead::SequenceClassification, "BertForSequenceClassification"},
    {TaskHead::TokenClassification, "BertForTokenClassification"},
    {TaskHead::QuestionAnswering, "BertForQuestionAnswering"},
    {TaskHead::MultipleChoice, "BertForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubBert = {
    .model_type = "bert",
    .classes = kBertClasses,
    .base_class = "BertModel",
    .family = &kBert,
    .prefix = "bert.",
    .body = kHubEncoderBody,
    .names = kBertNames,
    .ties = kBertTies,
    .unread = kBertUnread,
    .keys = kBertBlocks,
    .harmless = kBertHarmless,
    .write = write_bert,
};

}  // namespace tessera
