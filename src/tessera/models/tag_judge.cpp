#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/tag_scores.h"
#include "tessera/models/token_classification.h"

namespace tessera {

namespace {

class TagJudge final : public Judge {
 public:
  explicit TagJudge(const Dataset& data)
      : texts_(data.texts()), names_(data.label_names), labelled_(!data.unlabelled) {}

  void keep_probabilities() override { keeps_ = true; }

  void add(std::int64_t first, std::int64_t count, const Predictions& predictions) override {
    const HostTensor &logits = predictions.at("logits"), &labels = predictions.at("labels");
    const std::int64_t tokens = logits.shape()[1], classes = logits.shape()[2];
    check(first == std::ssize(labels_), "predictions from sample ", first, " on, behind ",
          labels_.size());
    for (std::int64_t i = 0; i < count; ++i) {
      Tags right, found, shares;
      for (std::int64_t token = i * tokens; token < (i + 1) * tokens; ++token) {
        const auto label = static_cast<std::int32_t>(labels.data<float>()[token]);
        if (label == kIgnoredLabel) continue;
        const float* row = logits.data<float>() + token * classes;
        right.push_back(name(label));
        found.push_back(name(std::max_element(row, row + classes) - row));
        if (keeps_) {
          const std::vector<double> all = softmax_of(row, classes);
          shares.push_back(probability_text(*std::ranges::max_element(all)));
        }
      }
      labels_.push_back(std::move(right));
      predicted_.push_back(std::move(found));
      shares_.push_back(std::move(shares));
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
    if (keeps_) out.columns.emplace_back("probability");
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      std::vector<std::string>& row = out.rows.emplace_back(1, text(i));
      if (labelled_) row.push_back(join(labels_[i], " "));
      row.push_back(join(keeps_ ? of_words(i, predicted_[i]) : predicted_[i], " "));
      if (keeps_) row.push_back(join(of_words(i, shares_[i]), " "));
    }
    return out;
  }

 private:
  /// One for each word of sentence `i`; kNoTag of a word that has no token, or was cut off.
  Tags of_words(std::size_t i, const Tags& predicted) const {
    const auto row = static_cast<std::size_t>(texts_.rows.train) + i;
    Tags out;
    std::size_t next = 0;
    for (const bool has_token : texts_.labels.at(row).words()->has_token)
      out.emplace_back(has_token && next < predicted.size() ? predicted[next++] : kNoTag);
    return out;
  }
  /// A model may have more classes than the data has labels.
  std::string name(std::int64_t label) const {
    const auto i = static_cast<std::size_t>(label);
    return i < names_.size() ? names_[i] : text("LABEL_", label);
  }

  static constexpr const char* kNoTag = "_";

  const Texts& texts_;
  std::vector<std::string> names_;
  bool labelled_, keeps_ = false;
  std::vector<Tags> labels_, predicted_, shares_;
};

}  // namespace

std::unique_ptr<Judge> tag_judge(const Dataset& data) { return std::make_unique<TagJudge>(data); }

}  // namespace tessera
