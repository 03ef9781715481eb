/// DeiT (Touvron et al. 2020, arXiv 2012.12877): a Vision Transformer with a second token of no
/// patch, which learned from a teacher. The class is told by the first, or by the mean of what both
/// tell, each with a head of its own.

#include "tessera/models/pictures.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr std::string_view kDeitOthers[] = {"cls", "distillation"};
constexpr ReadField kDeitOwnReads[] = {{"distilled"}};
constexpr auto kDeitReads = joined(kPictureReads, kDeitOwnReads);

Value deit_logits(const ModelConfig& c, const TransformerLayer& layer, Value x) {
  if (!c.distilled) return tell_classes(c, "classifier", normed_row(layer, x, 0));
  const std::int64_t b = x.shape()[0], d = x.shape()[2];
  const Value both = norm(slice(x, 1, 0, 2), "norm", layer);  // [b, 2, d]
  const auto row = [&](std::int64_t i) { return reshape(slice(both, 1, i, 1), {b, d}); };
  return (tell_classes(c, "classifier.cls", row(0)) +
          tell_classes(c, "classifier.distillation", row(1))) *
         0.5;
}

constexpr PictureModel kDeitModel = {.others = kDeitOthers, .logits = deit_logits};

}  // namespace

extern constinit const ModelFamily kDeit = {
    .name = "deit",
    .doc = "as vit, with a token that learned from a teacher",
    .reads = kDeitReads,
    .tasks = kPictureTasks<kDeitModel>,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-12;
          config.classes = 1000;
        },
    .complete = [](ModelConfig& config) { complete_pictures(config, kDeitModel); },
    .find_problems = find_picture_problems,
    .layer = {.feed_forward = FeedForward::GeluErf},
};

}  // namespace tessera
