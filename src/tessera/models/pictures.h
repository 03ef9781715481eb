#pragma once
/// Models of pictures: a picture is cut into square patches, which are the tokens of an encoder.
/// Pre-norm layers, learned positions.

#include <span>
#include <string_view>

#include "tessera/base/joined.h"
#include "tessera/models/classification.h"
#include "tessera/models/family.h"
#include "tessera/nn/transformer.h"

namespace tessera {

/// In what they differ.
struct PictureModel {
  /// Blocks of tokens of no patch, a row each, before those of patches.
  std::span<const std::string_view> others;
  /// Logits [b, classes] of what the layers make [b, others + patches, width], before the norm.
  Value (*logits)(const ModelConfig& config, const TransformerLayer& layer, Value x);
  bool drops_embedding_alone = false;  // there is no dropout behind the parts of layers
};

/// The block `norm` of row `i` of each sample: x [b, s, d] -> [b, d].
Value normed_row(const TransformerLayer& layer, Value x, std::int64_t i);
/// A product with a bias: [b, classes].
Value tell_classes(const ModelConfig& config, std::string_view block, Value rows);

/// The task of telling the class of a picture. Inputs: those of data/images.h. Loss: mean
/// cross-entropy of the classes. Predicted: logits. Blocks: embed, layers.N, norm, classifier.
Task image_classification(const ModelConfig& config, const PictureModel& model);

/// ModelFamily::complete and find_problems.
void complete_pictures(ModelConfig& config, const PictureModel& model);
void find_picture_problems(const ModelConfig& config, FieldProblems& problems);

/// ModelFamily::reads.
inline constexpr ReadField kPictureReads[] = {
    {"layers"},     {"heads"},          {"kv-heads"}, {"width"},
    {"image-size"}, {"patch-size"},     {"dropout"},  {"attention-dropout"},
    {"norm-eps"},   {"image-channels"}, {"init-std"}, {"ffn-width"}};

/// ModelFamily::tasks.
template <const PictureModel& kModel>
inline constexpr FamilyTask kPictureTasks[] = {
    {kImageClassification,
     [](const ModelConfig& config) { return image_classification(config, kModel); }, kClassesReads,
     nullptr, /*head=*/"classifier"}};

}  // namespace tessera
