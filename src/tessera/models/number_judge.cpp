/// Judges of logits that are numbers to predict, or say of each of several labels whether a row has
/// it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/label_scores.h"
#include "tessera/models/classification.h"

namespace tessera {

namespace {

using Numbers = std::vector<double>;

/// Logits and labels [rows, k] of held-out rows.
class RowsJudge : public Judge {
 public:
  explicit RowsJudge(const Dataset& data) : names_(data.label_names), labelled_(!data.unlabelled) {
    const Texts& texts = data.texts();
    labels_ = std::span(texts.labels).subspan(static_cast<std::size_t>(texts.rows.train));
  }

  void add(std::int64_t first, std::int64_t count, const Predictions& predictions) override {
    const HostTensor& logits = predictions.at("logits");
    const std::int64_t k = logits.shape()[1];
    check(first == std::ssize(logits_), "predictions from sample ", first, " on, behind ",
          logits_.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const float* const row = logits.data<float>() + i * k;
      logits_.emplace_back(row, row + k);
    }
  }

  PredictionTable table() const override {
    PredictionTable out{{"row", "prediction"}, {}};
    if (labelled_) out.columns = {"row", "label", "prediction"};
    add_columns(out.columns);
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      std::vector<std::string>& row = out.rows.emplace_back(1, text(i));
      if (labelled_) row.push_back(labels_[i].none() ? "" : shown(labels_[i].numbers()));
      row.push_back(shown(predicted(logits_[i])));
      add_cells(logits_[i], row);
    }
    return out;
  }

 protected:
  /// What is predicted by logits, as labels are.
  virtual std::vector<float> predicted(const std::vector<float>& logits) const = 0;
  virtual std::string shown(std::span<const float> numbers) const = 0;
  virtual void add_columns(std::vector<std::string>&) const {}
  virtual void add_cells(const std::vector<float>&, std::vector<std::string>&) const {}

  /// Label and prediction `k` of each row whose label is known.
  std::pair<Numbers, Numbers> column(std::size_t k) const {
    std::pair<Numbers, Numbers> out;
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      if (labels_[i].none()) continue;
      const std::span<const float> label = labels_[i].numbers();
      out.first.push_back(k < label.size() ? label[k] : 0);
      out.second.push_back(predicted(logits_[i])[k]);
    }
    return out;
  }
  std::size_t width() const { return logits_.empty() ? 0 : logits_.front().size(); }
  bool scores_none() const {
    return !labelled_ || std::ranges::all_of(labels_.first(logits_.size()), &RowLabel::none);
  }

  std::vector<std::string> names_;

 private:
  bool labelled_;
  std::span<const RowLabel> labels_;
  std::vector<std::vector<float>> logits_;
};

class NumberJudge final : public RowsJudge {
 public:
  using RowsJudge::RowsJudge;

  NamedMeans scores() const override {
    if (scores_none()) return {};
    double squares = 0, distances = 0, linear = 0, monotone = 0;
    std::int64_t count = 0;
    bool vary = true;
    for (std::size_t k = 0; k < width(); ++k) {
      const auto [labels, found] = column(k);
      for (std::size_t i = 0; i < labels.size(); ++i) {
        squares += (found[i] - labels[i]) * (found[i] - labels[i]);
        distances += std::abs(found[i] - labels[i]);
        ++count;
      }
      const std::optional<double> of_numbers = pearson(labels, found),
                                  of_ranks = spearman(labels, found);
      vary = vary && of_numbers && of_ranks;
      linear += of_numbers.value_or(0), monotone += of_ranks.value_or(0);
    }
    const auto all = static_cast<double>(count), k = static_cast<double>(width());
    NamedMeans out = {{"mse", squares / all}, {"mae", distances / all}};
    if (vary) out.insert(out.end(), {{"pearson", linear / k}, {"spearmanr", monotone / k}});
    return out;
  }

 private:
  std::vector<float> predicted(const std::vector<float>& logits) const override { return logits; }
  /// One as a number, several as a JSON list: as labels are written.
  std::string shown(std::span<const float> numbers) const override {
    std::vector<std::string> out;
    for (const float number : numbers) out.push_back(format("%.7g", number));
    return out.size() == 1 ? out.front() : text("[", join(out), "]");
  }
};

class LabelSetJudge final : public RowsJudge {
 public:
  using RowsJudge::RowsJudge;

  void keep_probabilities() override { keeps_ = true; }

  NamedMeans scores() const override {
    if (scores_none()) return {};
    double both = 0, either = 0, f1 = 0;
    std::vector<bool> right;
    for (std::size_t k = 0; k < width(); ++k) {
      const auto [labels, found] = column(k);
      right.resize(labels.size(), true);
      double of_both = 0, of_either = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        of_both += labels[i] * found[i], of_either += labels[i] + found[i];
        right[i] = right[i] && labels[i] == found[i];
      }
      f1 += f1_of(of_both, of_either);
      both += of_both, either += of_either;
    }
    return {{"f1_micro", f1_of(both, either)},
            {"f1_macro", f1 / static_cast<double>(width())},
            {"accuracy", static_cast<double>(std::ranges::count(right, true)) /
                             static_cast<double>(right.size())}};
  }

 private:
  /// 0 where there are neither labels nor predictions, as in scikit-learn.
  static double f1_of(double both, double either) { return either == 0 ? 0 : 2 * both / either; }

  /// Of a model with more labels than the data names.
  std::string name(std::size_t k) const {
    return k < names_.size() ? names_[k] : text("LABEL_", k);
  }

  std::vector<float> predicted(const std::vector<float>& logits) const override {
    std::vector<float> out;
    for (const float logit : logits) out.push_back(logit > 0 ? 1.0F : 0.0F);
    return out;
  }
  std::string shown(std::span<const float> numbers) const override {
    std::string out;
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      if (numbers[k] != 0) out += text(out.empty() ? "" : ",", name(k));
    }
    return out;
  }
  void add_columns(std::vector<std::string>& columns) const override {
    const std::size_t count = width() == 0 ? names_.size() : width();
    for (std::size_t k = 0; keeps_ && k < count; ++k) columns.push_back(text("p(", name(k), ")"));
  }
  void add_cells(const std::vector<float>& logits, std::vector<std::string>& row) const override {
    for (std::size_t k = 0; keeps_ && k < logits.size(); ++k)
      row.push_back(probability_text(1 / (1 + std::exp(-static_cast<double>(logits[k])))));
  }

  bool keeps_ = false;
};

}  // namespace

std::unique_ptr<Judge> number_judge_of_rows(const Dataset& data) {
  return std::make_unique<NumberJudge>(data);
}

std::unique_ptr<Judge> label_set_judge_of_rows(const Dataset& data) {
  return std::make_unique<LabelSetJudge>(data);
}

}  // namespace tessera
