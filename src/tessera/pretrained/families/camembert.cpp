#include "tessera/pretrained/families/roberta.h"

namespace tessera {

extern const ModelFamily kCamembert;

namespace {

constexpr HubClass kCamembertClasses[] = {
    {TaskHead::MaskedLm, "CamembertForMaskedLM"},
    {TaskHead::SequenceClassification, "CamembertForSequenceClassification"},
    {TaskHead::TokenClassification, "CamembertForTokenClassification"},
    {TaskHead::QuestionAnswering, "CamembertForQuestionAnswering"},
    {TaskHead::MultipleChoice, "CamembertForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubCamembert =
    roberta_folders<30522>(kCamembert, "camembert", "CamembertModel", kCamembertClasses);

}  // namespace tessera
