#include "tessera/pretrained/families/roberta.h"

namespace tessera {

extern const ModelFamily kXlmRoberta;

namespace {

constexpr HubClass kXlmRobertaClasses[] = {
    {TaskHead::MaskedLm, "XLMRobertaForMaskedLM"},
    {TaskHead::SequenceClassification, "XLMRobertaForSequenceClassification"},
    {TaskHead::TokenClassification, "XLMRobertaForTokenClassification"},
    {TaskHead::QuestionAnswering, "XLMRobertaForQuestionAnswering"},
    {TaskHead::MultipleChoice, "XLMRobertaForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubXlmRoberta =
    roberta_folders<30522>(kXlmRoberta, "xlm-roberta", "XLMRobertaModel", kXlmRobertaClasses);

}  // namespace tessera
