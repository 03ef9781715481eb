/// The Vision Transformer (Dosovitskiy et al. 2020, arXiv 2010.11929): the class is told by a token
/// of no patch. GELU (erf form), biases.

#include "tessera/models/pictures.h"

namespace tessera {

namespace {

constexpr std::string_view kVitOthers[] = {"cls"};

constexpr PictureModel kVitModel = {
    .others = kVitOthers,
    .logits = [](const ModelConfig& c, const TransformerLayer& layer, Value x) -> Value {
      return tell_classes(c, "classifier", normed_row(layer, x, 0));
    },
};

}  // namespace

extern constinit const ModelFamily kVit = {
    .name = "vit",
    .doc = "patches of pictures as tokens, pre-norm, GELU, classes",
    .reads = kPictureReads,
    .tasks = kPictureTasks<kVitModel>,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-12;
          config.classes = 1000;
        },
    .complete = [](ModelConfig& config) { complete_pictures(config, kVitModel); },
    .find_problems = find_picture_problems,
    .layer = {.feed_forward = FeedForward::GeluErf},
};

}  // namespace tessera
