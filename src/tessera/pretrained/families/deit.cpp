/// DeiT as Hugging Face's folders have it, with one head or with both.

#include "tessera/pretrained/hub/hub_pictures.h"

namespace tessera {

extern const ModelFamily kDeit;

namespace {

bool is_distilled(const ModelConfig& model) { return model.distilled; }
bool is_not_distilled(const ModelConfig& model) { return !model.distilled; }

constexpr HubName kDeitNames[] = {
    {"embed.distillation.weight", "deit.embeddings.distillation_token"},
    {.ours = "classifier",
     .theirs = "classifier",
     .is_in = is_not_distilled,
     .heads = TaskHead::ImageClassification},
    {.ours = "classifier.cls",
     .theirs = "cls_classifier",
     .is_in = is_distilled,
     .heads = TaskHead::ImageClassification},
    {.ours = "classifier.distillation",
     .theirs = "distillation_classifier",
     .is_in = is_distilled,
     .heads = TaskHead::ImageClassification},
};

constexpr HubClass kDeitClasses[] = {
    {TaskHead::ImageClassification, "DeiTForImageClassificationWithTeacher",
     &ModelConfig::distilled},
    {TaskHead::ImageClassification, "DeiTForImageClassification"}};

}  // namespace

extern constinit const HubFamily kHubDeit = {
    .model_type = "deit",
    .classes = kDeitClasses,
    .base_class = "DeiTModel",
    .family = &kDeit,
    .prefix = "deit.",
    .body = kHubVitBody,
    .names = kDeitNames,
    .unread = kHubPictureUnread,
    .keys = kHubVitKeys,
    .harmless = kHubPictureHarmless,
};

}  // namespace tessera
