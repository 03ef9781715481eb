#include "tessera/models/pictures.h"

#include <utility>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/images.h"
#include "tessera/models/layer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

/// Patches, numbers of a patch, and classes: tensors of so many have no more than 2^62 bytes.
constexpr std::int64_t kMostOfPicture = 1'000'000'000;

std::int64_t patches_of(const ModelConfig& c) {
  const std::int64_t in_line = c.image_size / c.patch_size;
  return in_line * in_line;
}

/// The sides are 1 or more, and there are neither too many patches nor numbers of one.
bool sizes_fit(const ModelConfig& c) {
  if (c.image_size < 1 || c.patch_size < 1 || c.image_channels < 1) return false;
  const auto fit = [](std::int64_t a, std::int64_t b) { return a == 0 || b <= kMostOfPicture / a; };
  const std::int64_t in_line = c.image_size / c.patch_size, side = c.patch_size;
  return fit(in_line, in_line) && fit(side, side) && fit(side * side, c.image_channels);
}

std::int64_t tokens_of(const ModelConfig& c, const PictureModel& model) {
  return std::ssize(model.others) + patches_of(c);
}

std::int64_t pixels_of_patch(const ModelConfig& c) {
  return c.image_channels * c.patch_size * c.patch_size;
}

/// Patches [b, p, c s s] -> the residual stream [b, n + p, d], the n tokens of no patch first.
/// Parameters, in the shapes of a convolution and of whole tokens, as files of such models have
/// them: patch.weight [d, c, s, s] and .bias; of each other token weight [1, 1, d];
/// position.weight [1, n + p, d].
Value embedded_patches(const ModelConfig& c, const PictureModel& model, Value patches,
                       const Pass& pass) {
  Builder& builder = patches.builder();
  const Scope scope(builder, "embed");
  const WeightInit init = init_of(c);
  const std::int64_t batch = patches.shape()[0], d = c.width;
  const auto parameter = [&](std::string_view block, const char* name, const Shape& shape,
                             const WeightInit& first) {
    const Scope within(builder, block);
    return builder.state(name, {DType::F32, shape, {}}, Role::Parameter, first.of(shape));
  };
  const Shape window{d, c.image_channels, c.patch_size, c.patch_size};
  const Value weight = reshape(parameter("patch", "weight", window, init), {d, pixels_of_patch(c)});
  const Value seen =
      matmul(patches, weight, {.trans_b = true}) + parameter("patch", "bias", {d}, zeros_init());
  std::vector<Value> tokens;
  for (const std::string_view block : model.others)
    tokens.push_back(broadcast_to(parameter(block, "weight", {1, 1, d}, init), {batch, 1, d}));
  tokens.push_back(seen);
  Value x = concat(tokens, 1) + parameter("position", "weight", {1, tokens_of(c, model), d}, init);
  x = dropout_layer(x, c.dropout, pass.step, "dropout");
  builder.set_name(x, "residual");
  return x;
}

Value picture_logits(const ModelConfig& c, const PictureModel& model, Value patches,
                     const Pass& pass) {
  TransformerLayer layer = layer_of(c);
  layer.residual_init = residual_init(init_of(c), 2 * c.layers);
  if (model.drops_embedding_alone) layer.hidden_dropout = 0;
  Value x = embedded_patches(c, model, patches, pass);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope scope(patches.builder(), text("layers.", i));
    x = encoder_layer(x, layer, {}, pass);
  }
  return model.logits(c, layer, x);
}

/// Of the pictures that are held out; classes without names are called by their numbers.
std::unique_ptr<Judge> picture_judge(const Pictures::Part& part, std::vector<std::string> names,
                                     std::int64_t classes) {
  std::vector<std::int32_t> labels;  // empty: they are not known
  for (std::int64_t i = 0; part.set->labelled() && i < part.range.count; ++i)
    labels.push_back(part.set->label(part.range.first + i));
  if (names.empty())
    for (std::int64_t i = 0; i < classes; ++i) names.push_back(text(i));
  return class_judge(std::move(labels), std::move(names));
}

}  // namespace

Value normed_row(const TransformerLayer& layer, Value x, std::int64_t i) {
  const Shape& shape = x.shape();
  return norm(reshape(slice(x, 1, i, 1), {shape[0], shape[2]}), "norm", layer);
}

Value tell_classes(const ModelConfig& c, std::string_view block, Value rows) {
  return linear(rows, block, class_count(c), {true, init_of(c)});
}

Task image_classification(const ModelConfig& c, const PictureModel& model) {
  Task out;
  out.name = kImageClassification;
  out.inputs = {{"patches", DType::F32, {patches_of(c), pixels_of_patch(c)}},
                {"labels", DType::I32, {}, class_count(c), /*ignorable=*/true}};
  out.tokens = tokens_of(c, model);
  out.means = {{kLossMean}, {"accuracy", 0}};
  out.data = DataKind::Pictures;
  out.measure = [c, model](const TaskValues& in, const Pass& pass) -> Measured {
    const Value logits = picture_logits(c, model, in.at("patches"), pass), labels = in.at("labels");
    return {{cross_entropy_mean(logits, labels), accuracy(logits, labels)}, {{"logits", logits}}};
  };
  out.judge = [c](const Dataset& data) {
    return picture_judge(data.pictures()->valid, data.label_names, class_count(c));
  };
  const auto options = [patch = c.patch_size](const SampleChoices& choices, bool shuffled) {
    return ImageSamplesOptions{patch, choices.seed, shuffled, shuffled ? 0 : choices.most,
                               shuffled && choices.varied};
  };
  out.train_samples = [options](const Dataset& data, const SampleChoices& choices) {
    return image_samples(data.pictures()->train, options(choices, true));
  };
  out.valid_samples = [options](const Dataset& data, const SampleChoices& choices) {
    return image_samples(data.pictures()->valid, options(choices, false));
  };
  return out;
}

void complete_pictures(ModelConfig& config, const PictureModel& model) {
  if (!sizes_fit(config)) return;  // told as a problem
  config.context = tokens_of(config, model);
  config.vocabulary = 1;  // there are no tokens
}

void find_picture_problems(const ModelConfig& c, FieldProblems& problems) {
  bool positive = true;
  for (const auto& [name, value] : {std::pair("image-size", c.image_size),
                                    {"patch-size", c.patch_size},
                                    {"image-channels", c.image_channels}}) {
    if (value < 1) problems.add({name}, text(name, " is ", value, "; it must be 1 or more"));
    positive = positive && value >= 1;
  }
  if (c.classes < 0 || c.classes > kMostOfPicture)
    problems.add({"classes"}, text("classes is ", c.classes, "; it must be from 1 to ",
                                   kMostOfPicture, ", or 0 for as many as the data has"));
  if (positive && !sizes_fit(c))
    problems.add({"image-size", "patch-size", "image-channels"},
                 text("image-size ", c.image_size, ", patch-size ", c.patch_size,
                      " and image-channels ", c.image_channels, " make more than ", kMostOfPicture,
                      " patches, or numbers in a patch; give smaller pictures"));
  if (c.image_size >= 1 && c.patch_size >= 1 && c.image_size % c.patch_size != 0)
    problems.add({"image-size", "patch-size"},
                 text("patch-size ", c.patch_size, " does not divide image-size ", c.image_size,
                      "; choose a divisor, so that patches cover a picture"));
}

}  // namespace tessera
