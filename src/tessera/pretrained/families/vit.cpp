/// The Vision Transformer as Hugging Face's folders have it: ViTForImageClassification.

#include "tessera/pretrained/hub/hub_pictures.h"

namespace tessera {

extern const ModelFamily kVit;

namespace {

constexpr HubClass kVitClasses[] = {{TaskHead::ImageClassification, "ViTForImageClassification"}};

}  // namespace

extern constinit const HubFamily kHubVit = {
    .model_type = "vit",
    .classes = kVitClasses,
    .base_class = "ViTModel",
    .family = &kVit,
    .prefix = "vit.",
    .body = kHubVitBody,
    .names = kHubPictureHead,
    .unread = kHubPictureUnread,
    .keys = kHubVitKeys,
    .harmless = kHubPictureHarmless,
};

}  // namespace tessera
