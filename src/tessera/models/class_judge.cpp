#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/label_scores.h"
#include "tessera/models/classification.h"
#include "tessera/models/multiple_choice.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

class ClassJudge final : public Judge {
 public:
  ClassJudge(std::vector<std::int32_t> labels, std::vector<std::string> names)
      : names_(std::move(names)), labels_(std::move(labels)) {}
  /// Of choices, which have no names: class 1 of a row is not that of another.
  explicit ClassJudge(std::vector<std::int32_t> labels)
      : choices_(true), labels_(std::move(labels)) {}

  void keep_probabilities() override { keeps_ = true; }

  void add(std::int64_t first, std::int64_t count, const Predictions& predictions) override {
    const HostTensor& logits = predictions.at("logits");
    const std::int64_t classes = logits.shape()[1];
    check(first == std::ssize(predicted_), "predictions from sample ", first, " on, behind ",
          predicted_.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const float* row = logits.data<float>() + i * classes;
      predicted_.push_back(static_cast<std::int32_t>(std::max_element(row, row + classes) - row));
      if (keeps_) {
        const std::vector<double> shares = softmax_of(row, classes);
        probabilities_.insert(probabilities_.end(), shares.begin(), shares.end());
      }
    }
  }

  NamedMeans scores() const override {
    if (labels_.empty()) return {};
    std::vector<std::int32_t> labels, predicted;  // where the label is known
    for (std::size_t i = 0; i < predicted_.size(); ++i) {
      if (!counts(i)) continue;
      labels.push_back(labels_[i]);
      predicted.push_back(predicted_[i]);
    }
    if (labels.empty()) return {};
    if (choices_) return {{"accuracy", accuracy_of(labels, predicted)}};
    return {
        {"accuracy", accuracy_of(labels, predicted)},
        {"f1", names_.size() == 2 ? f1_of_label(labels, predicted, 1) : mean_f1(labels, predicted)},
        {"matthews", matthews_correlation(labels, predicted)}};
  }

  PredictionTable table() const override {
    PredictionTable out{{"row", "prediction"}, {}};
    if (!labels_.empty()) out.columns = {"row", "label", "prediction"};
    const std::size_t shares =
        predicted_.empty() ? names_.size() : probabilities_.size() / predicted_.size();
    for (std::size_t k = 0; keeps_ && k < shares; ++k)
      out.columns.push_back(text("p(", name(static_cast<std::int32_t>(k)), ")"));
    for (std::size_t i = 0; i < predicted_.size(); ++i) {
      std::vector<std::string>& row = out.rows.emplace_back(1, text(i));
      if (!labels_.empty()) row.push_back(counts(i) ? name(labels_[i]) : "");
      row.push_back(name(predicted_[i]));
      for (std::size_t k = 0; keeps_ && k < shares; ++k)
        row.push_back(probability_text(probabilities_[i * shares + k]));
    }
    return out;
  }

 private:
  /// A model may have more classes than the data has labels.
  std::string name(std::int32_t label) const {
    const auto i = static_cast<std::size_t>(label);
    return i < names_.size() ? names_[i] : text(choices_ ? "" : "LABEL_", label);
  }

  /// The label of a row is known.
  bool counts(std::size_t row) const { return labels_[row] != kIgnoredLabel; }

  bool choices_ = false;
  std::vector<std::string> names_;
  std::vector<std::int32_t> labels_, predicted_;
  bool keeps_ = false;
  std::vector<double> probabilities_;  // of each row, one for each class; empty: not kept
};

}  // namespace

std::vector<double> softmax_of(const float* logits, std::int64_t count) {
  const double most = *std::max_element(logits, logits + count);
  std::vector<double> out;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(std::exp(logits[i] - most));
    sum += out.back();
  }
  for (double& share : out) share /= sum;
  return out;
}

std::string probability_text(double probability) { return format("%.6g", probability); }

std::unique_ptr<Judge> class_judge(std::vector<std::int32_t> labels,
                                   std::vector<std::string> names) {
  return std::make_unique<ClassJudge>(std::move(labels), std::move(names));
}

namespace {

/// None where the data has none.
std::vector<std::int32_t> held_out_labels(const Dataset& data) {
  if (data.unlabelled) return {};
  const Texts& texts = data.texts();
  return label_numbers(std::span(texts.labels).subspan(static_cast<std::size_t>(texts.rows.train)));
}

}  // namespace

std::unique_ptr<Judge> class_judge_of_rows(const Dataset& data) {
  return class_judge(held_out_labels(data), data.label_names);
}

std::unique_ptr<Judge> choice_judge_of_rows(const Dataset& data) {
  return std::make_unique<ClassJudge>(held_out_labels(data));
}

}  // namespace tessera
