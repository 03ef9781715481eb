#pragma once
/// The task of telling the class of one text or a pair of texts: a label for each row of a table.

#include <functional>
#include <memory>
#include <string>
#include <vector>

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

/// Inputs and samples: those of data/labelled_texts.h. Loss: mean cross-entropy of the labels.
/// Predicted: logits. Judged by class_judge_of_rows.
Task sequence_classification(const ModelConfig& config, TextClassifier classifier);

/// That of encoders, MaskedModel::text_head: transformers' ...ForSequenceClassification.
TextClassifier encoder_classifier(const ModelConfig& config, const MaskedModel& model);

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
/// `names` are those of the classes. Scores: accuracy, and f1: of two classes that of class 1, of
/// others the mean over classes that are labels or predictions. Table: row, label, prediction.
/// A label that is kIgnoredLabel is not known, and does not count. Without labels: no scores, and
/// no such column.
std::unique_ptr<Judge> class_judge(std::vector<std::int32_t> labels,
                                   std::vector<std::string> names);
/// The same of the held-out rows of `data`.
std::unique_ptr<Judge> class_judge_of_rows(const Dataset& data);

}  // namespace tessera
