/// DINOv2 (Oquab et al. 2023, arXiv 2304.07193): a Vision Transformer whose parts add their results
/// times a weight for each channel, GELU (erf form) or SwiGLU. The class is told by the token of no
/// patch and the mean of the patches.

#include "tessera/models/families/dinov2.h"

#include "tessera/base/text.h"
#include "tessera/models/layer.h"
#include "tessera/models/pictures.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr std::string_view kDinov2Others[] = {"cls"};
constexpr ReadField kDinov2OwnReads[] = {{"activation", "gelu or swiglu"}, {"layer-scale"}};
constexpr auto kDinov2Reads = joined(kPictureReads, kDinov2OwnReads);

Value dinov2_logits(const ModelConfig& c, const TransformerLayer& layer, Value x) {
  const Value rows = norm(x, "norm", layer);  // [b, 1 + patches, d]
  const std::int64_t b = rows.shape()[0], patches = rows.shape()[1] - 1;
  const Value first = reshape(slice(rows, 1, 0, 1), {b, c.width}),
              rest = mean(slice(rows, 1, 1, patches), {1});  // [b, d] each
  return tell_classes(c, "classifier", concat({first, rest}, 1));
}

constexpr PictureModel kDinov2Model = {
    .others = kDinov2Others, .logits = dinov2_logits, .drops_embedding_alone = true};

void complete_dinov2(ModelConfig& c) {
  complete_pictures(c, kDinov2Model);
  if (c.ffn_width == 0 && c.width > 0 && c.width <= kMaxFieldSize)
    c.ffn_width = dinov2_hidden(c.width, 4, c.activation == kDinov2SwiGlu);
}

void find_dinov2_problems(const ModelConfig& c, FieldProblems& problems) {
  find_picture_problems(c, problems);
  constexpr std::string_view kKnown[] = {kDinov2Gelu, kDinov2SwiGlu};
  find_activation_problems(c, kKnown, problems);
  if (c.layer_scale <= 0)
    problems.add({"layer-scale"}, text("layer-scale is ", c.layer_scale, "; it must be above 0"));
  if (c.ffn_width > 0 && c.ffn_width <= kMaxFieldSize && c.width <= kMaxFieldSize &&
      dinov2_ratio(c) == 0)
    problems.add({"ffn-width", "width"},
                 text("ffn-width is ", c.ffn_width, " and width ", c.width,
                      c.activation == kDinov2Gelu
                          ? "; it must be a multiple of the width"
                          : "; it must be two thirds of a multiple of the width, rounded up to a "
                            "multiple of 8",
                      " (mlp_ratio in config.json)"));
}

}  // namespace

extern constinit const ModelFamily kDinov2 = {
    .name = "dinov2",
    .doc = "as vit, with scaled channels, GELU or SwiGLU, the mean of patches beside the token",
    .reads = kDinov2Reads,
    .tasks = kPictureTasks<kDinov2Model>,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-6;
          config.patch_size = 14;
          config.classes = 1000;
        },
    .complete = complete_dinov2,
    .find_problems = find_dinov2_problems,
};

}  // namespace tessera
