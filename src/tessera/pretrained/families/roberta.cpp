#include "tessera/pretrained/families/roberta.h"

namespace tessera {

extern const ModelFamily kRoberta;

namespace {

constexpr HubClass kRobertaClasses[] = {
    {TaskHead::MaskedLm, "RobertaForMaskedLM"},
    {TaskHead::SequenceClassification, "RobertaForSequenceClassification"},
    {TaskHead::TokenClassification, "RobertaForTokenClassification"},
    {TaskHead::QuestionAnswering, "RobertaForQuestionAnswering"},
    {TaskHead::MultipleChoice, "RobertaForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubRoberta =
    roberta_folders<50265>(kRoberta, "roberta", "RobertaModel", kRobertaClasses);

}  // namespace tessera
