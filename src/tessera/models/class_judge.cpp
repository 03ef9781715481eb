#include <algorithm>
#include <set>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/models/classification.h"

namespace tessera {

namespace {

class ClassJudge final : public Judge {
 public:
  ClassJudge(std::vector<std::int32_t> labels, std::vector<std::string> names)
      : names_(std::move(names)), labels_(std::move(labels)) {}

  void add(std::int64_t first, std::int64_t count, const Predictions& predictions) override {
    const HostTensor& logits = predictions.at("logits");
    const std::int64_t classes = logits.shape()[1];
    check(first == std::ssize(predicted_), "predictions from sample ", first, " on, behind ",
          predicted_.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const float* row = logits.data<float>() + i * classes;
      predicted_.push_back(static_cast<std::int32_t>(std::max_element(row, row + classes) - row));
    }
  }

  NamedMeans scores() const override {
    if (predicted_.empty() || labels_.empty()) return {};
    std::int64_t right = 0;
    for (std::size_t i = 0; i < predicted_.size(); ++i) right += predicted_[i] == labels_[i];
    return {{"accuracy", static_cast<double>(right) / static_cast<double>(predicted_.size())},
            {"f1", f1()}};
  }

  PredictionTable table() const override {
    PredictionTable out{{"row", "prediction"}, {}};
    if (!labels_.empty()) out.columns = {"row", "label", "prediction"};
    for (std::size_t i = 0; i < predicted_.size(); ++i) {
      std::vector<std::string>& row = out.rows.emplace_back(1, text(i));
      if (!labels_.empty()) row.push_back(name(labels_[i]));
      row.push_back(name(predicted_[i]));
    }
    return out;
  }

 private:
  /// A model may have more classes than the data has labels.
  std::string name(std::int32_t label) const {
    const auto i = static_cast<std::size_t>(label);
    return i < names_.size() ? names_[i] : text("LABEL_", label);
  }

  double f1() const {
    if (names_.size() == 2) return f1_of(1);
    std::set<std::int32_t> classes(predicted_.begin(), predicted_.end());
    classes.insert(labels_.begin(), labels_.begin() + std::ssize(predicted_));
    double sum = 0;
    for (const std::int32_t label : classes) sum += f1_of(label);
    return sum / static_cast<double>(classes.size());
  }

  /// 2 x right / (labels + predictions); 0 where there are neither.
  double f1_of(std::int32_t label) const {
    std::int64_t right = 0, either = 0;
    for (std::size_t i = 0; i < predicted_.size(); ++i) {
      const bool is = labels_[i] == label, told = predicted_[i] == label;
      right += is && told;
      either += is + told;
    }
    return either == 0 ? 0 : 2 * static_cast<double>(right) / static_cast<double>(either);
  }

  std::vector<std::string> names_;
  std::vector<std::int32_t> labels_, predicted_;
};

}  // namespace

std::unique_ptr<Judge> class_judge(std::vector<std::int32_t> labels,
                                   std::vector<std::string> names) {
  return std::make_unique<ClassJudge>(std::move(labels), std::move(names));
}

std::unique_ptr<Judge> class_judge_of_rows(const Dataset& data) {
  if (data.unlabelled) return class_judge({}, data.labels.names);
  const std::vector<std::int32_t>& all = data.labels.of_rows;
  return class_judge({all.begin() + data.rows.train, all.end()}, data.labels.names);
}

}  // namespace tessera
