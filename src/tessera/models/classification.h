#pragma once
/// The task of telling the class of one text or a pair of texts: a label for each row of a table.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/joined.h"
#include "tessera/models/encoder.h"
#include "tessera/models/family.h"

namespace tessera {

struct Dataset;
class Vocabulary;

/// How a family classifies texts.
struct TextClassifier {
  /// Logits [b, classes] of the inputs of data/labelled_texts.h.
  std::function<Value(const TaskValues& inputs, const Pass& pass)> logits = nullptr;
  std::function<SampleFrame(const Vocabulary& vocabulary)> frame = nullptr;
  bool types = false, mask = false, last = false;  // inputs that it reads
};

/// The task of the configuration, one that is learned of the logits of texts. Inputs and samples:
/// those of data/labelled_texts.h. Predicted: logits.
///   sequence_classification     labels [b] i32; loss: mean cross-entropy
///   regression                  labels [b, classes] f32; loss: mean squared error of all numbers
///   multi_label_classification  labels [b, classes] f32, 1 or 0; loss: mean of the binary
///                               cross-entropies of all
/// Tasks of other names are learned as the first.
Task text_classification(const ModelConfig& config, TextClassifier classifier);

/// That of encoders, MaskedModel::text_head: transformers' ...ForSequenceClassification.
TextClassifier encoder_classifier(const ModelConfig& config, const MaskedModel& model);
template <const MaskedModel& kModel>
TextClassifier encoder_classifier(const ModelConfig& config) {
  return encoder_classifier(config, kModel);
}

/// So many classes are predicted: those of the configuration, or 2 while the data are not known.
std::int64_t class_count(const ModelConfig& config);
/// The rate of dropout before a classifier.
double classifier_dropout(const ModelConfig& config);

/// FamilyTask::reads and find_problems of tasks that classify texts.
inline constexpr ReadField kClassesReads[] = {{"classes"}};
inline constexpr ReadField kClassifierReads[] = {{"classes"}, {"classifier-dropout"}},
                           kPoolingReads[] = {{"classes"}, {"classifier-dropout"}, {"pooling"}};
constexpr std::span<const ReadField> classifier_reads(const MaskedModel& model = {}) {
  return model.may_pool ? std::span<const ReadField>(kPoolingReads) : kClassifierReads;
}
void find_classifier_problems(const ModelConfig& config, FieldProblems& problems);

/// Judges logits [batch, classes], by the name "logits", of held-out samples of these labels;
/// `names` are those of the classes. Scores: accuracy; f1: of two classes that of class 1, of
/// others the mean over all that are labels or predictions; matthews. Table: row, label, prediction.
/// A label that is kIgnoredLabel is not known, and does not count. Without labels: no scores, and
/// no such column.
std::unique_ptr<Judge> class_judge(std::vector<std::int32_t> labels,
                                   std::vector<std::string> names);
/// The same of the held-out rows of `data`.
std::unique_ptr<Judge> class_judge_of_rows(const Dataset& data);

/// The same of numbers, the logits themselves: scores mse, mae, pearson, spearmanr.
std::unique_ptr<Judge> number_judge_of_rows(const Dataset& data);
/// The same of several labels, those whose logit is above 0: scores f1_micro, f1_macro, accuracy,
/// the share of rows whose labels are all right.
std::unique_ptr<Judge> label_set_judge_of_rows(const Dataset& data);

/// The rows of a family for all tasks of text_classification. `kClassifier`: what makes its
/// TextClassifier.
template <TextClassifier (*kClassifier)(const ModelConfig& config)>
constexpr auto text_tasks(std::span<const ReadField> reads, std::string_view head) {
  constexpr auto kMake = [](const ModelConfig& config) {
    return text_classification(config, kClassifier(config));
  };
  return std::array<FamilyTask, 3>{
      {{kSequenceClassification, kMake, reads, find_classifier_problems, head},
       {kRegression, kMake, reads, find_classifier_problems, head},
       {kMultiLabelClassification, kMake, reads, find_classifier_problems, head}}};
}

}  // namespace tessera
