#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/data/tag_scores.h"
#include "tessera/models/token_classification.h"

namespace tessera {

namespace {

class TagJudge final : public Judge {
 public:
  explicit TagJudge(const Dataset& data) : names_(data.labels.names), labelled_(!data.unlabelled) {}

  void add(std::int64_t first, std::int64_t count, const Predictions& predictions) override {
    const HostTensor &logits = predictions.at("logits"), &labels = predictions.at("labels");
    const std::int64_t tokens = logits.shape()[1], classes = logits.shape()[2];
    check(first == std::ssize(labels_), "predictions from sample ", first, " on, behind ",
          labels_.size());
    for (std::int64_t i = 0; i < count; ++i) {
      Tags right, told;
      for (std::int64_t token = i * tokens; token < (i + 1) * tokens; ++token) {
        const auto label = static_cast<std::int32_t>(labels.data<float>()[token]);
        if (label == kIgnoredLabel) continue;
        const float* row = logits.data<float>() + token * classes;
        right.push_back(name(label));
        told.push_back(name(std::max_element(row, row + classes) - row));
      }
      labels_.push_back(std::move(right));
      predicted_.push_back(std::move(told));
    }
  }

  NamedMeans scores() const override {
    if (!labelled_) return {};
    const TagScores scores = tag_scores(labels_, predicted_);
    NamedMeans out = {{"accuracy", scores.accuracy}};
    if (!are_entity_tags(names_)) return out;
    out.insert(out.end(), {{"precision", scores.all.precision()},
                           {"recall", scores.all.recall()},
                           {"f1", scores.all.f1()}});
    for (const auto& [type, counts] : scores.types) out.emplace_back("f1_" + type, counts.f1());
    return out;
  }

  PredictionTable table() const override {
    PredictionTable out{{"row", "prediction"}, {}};
    if (labelled_) out.columns = {"row", "label", "prediction"};
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      std::vector<std::string>& row = out.rows.emplace_back(1, text(i));
      if (labelled_) row.push_back(join(labels_[i], " "));
      row.push_back(join(predicted_[i], " "));
    }
    return out;
  }

 private:
  /// A model may have more classes than the data has labels.
  std::string name(std::int64_t label) const {
    const auto i = static_cast<std::size_t>(label);
    return i < names_.size() ? names_[i] : text("LABEL_", label);
  }

  std::vector<std::string> names_;
  bool labelled_;
  std::vector<Tags> labels_, predicted_;
};

}  // namespace

std::unique_ptr<Judge> tag_judge(const Dataset& data) { return std::make_unique<TagJudge>(data); }

}  // namespace tessera
