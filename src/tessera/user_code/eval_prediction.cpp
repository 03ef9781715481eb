#include "tessera/user_code/eval_prediction.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// The numbers of each row of [rows, ...].
std::int64_t row_size(const HostTensor& tensor) {
  return tensor.shape()[0] == 0 ? 0 : tensor.numel() / tensor.shape()[0];
}

std::span<const float> row_of(const HostTensor& tensor, std::int64_t row) {
  const std::int64_t size = row_size(tensor);
  return {tensor.data<float>() + row * size, static_cast<std::size_t>(size)};
}

std::int64_t largest(std::span<const float> numbers) {
  return std::ranges::max_element(numbers) - numbers.begin();
}

class OwnJudge final : public Judge {
 public:
  OwnJudge(std::unique_ptr<Judge> of_task, std::shared_ptr<const MapDataset> dataset,
           std::function<NamedMeans(const EvalPrediction&)> metrics)
      : of_task_(std::move(of_task)), metrics_(std::move(metrics)) {
    eval_.dataset = std::move(dataset);
  }

  void add(std::int64_t first, std::int64_t count, const Predictions& predictions) override {
    if (of_task_) of_task_->add(first, count, predictions);
    eval_.samples += count;
    for (const auto& [name, rows] : predictions) {
      const float* const from = rows.data<float>();
      Gathered& gathered = gathered_[name];
      gathered.shape = rows.shape();
      gathered.numbers.insert(gathered.numbers.end(), from, from + count * row_size(rows));
    }
  }

  NamedMeans scores() const override {
    if (scores_) return *scores_;
    EvalPrediction out = eval_;
    if (of_task_) out.scores = of_task_->scores();
    for (const auto& [name, gathered] : gathered_) {
      Shape shape = gathered.shape;
      shape[0] = eval_.samples;
      out.predictions.emplace(name, HostTensor::of(shape, gathered.numbers));
    }
    scores_ = metrics_(out);
    return *scores_;
  }

  PredictionTable table() const override {
    if (of_task_) return of_task_->table();
    PredictionTable out{{"row"}, {}};
    for (std::int64_t i = 0; i < eval_.samples; ++i) out.rows.push_back({text(i)});
    add_labels(out);
    for (const auto& [name, gathered] : gathered_) add_column(out, name, gathered);
    return out;
  }

 private:
  struct Gathered {
    Shape shape;  // of a batch
    std::vector<float> numbers;
  };

  void add_labels(PredictionTable& table) const {
    if (!eval_.dataset || table.rows.empty()) return;
    const Features first = sample_of(*eval_.dataset, 0);
    const auto label = first.find("labels");
    if (label == first.end() || !std::holds_alternative<std::int32_t>(label->second)) return;
    table.columns.emplace_back("label");
    const std::vector<std::int32_t> labels = eval_.labels();
    for (std::size_t i = 0; i < table.rows.size(); ++i) table.rows[i].push_back(text(labels[i]));
  }

  /// Of [samples, classes] the largest, of one number a sample that; of others nothing.
  static void add_column(PredictionTable& table, const std::string& name,
                         const Gathered& gathered) {
    if (gathered.shape.ndim() > 2) return;
    const std::size_t size =
        gathered.shape.ndim() == 2 ? static_cast<std::size_t>(gathered.shape[1]) : 1;
    table.columns.push_back(name == "logits" ? "prediction" : name);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const std::span<const float> row = std::span(gathered.numbers).subspan(i * size, size);
      table.rows[i].push_back(size == 1 ? text(row[0]) : text(largest(row)));
    }
  }

  std::unique_ptr<Judge> of_task_;
  std::function<NamedMeans(const EvalPrediction&)> metrics_;
  EvalPrediction eval_;  // but for what is gathered
  std::map<std::string, Gathered> gathered_;
  mutable std::optional<NamedMeans> scores_;  // once they were asked for
};

}  // namespace

std::vector<std::int32_t> EvalPrediction::argmax(std::string_view name) const {
  const auto found = predictions.find(name);
  std::vector<std::string> names;
  for (const auto& [known, tensor] : predictions) names.push_back(known);
  require(found != predictions.end(), "there is no prediction '", name, "', only ",
          names.empty() ? "the loss" : join(names),
          "; return it from run_forward_step: {loss, {{\"", name, "\", value}}}");
  require(found->second.shape().ndim() == 2, "predictions '", name, "' are ", found->second.shape(),
          "; argmax needs [samples, classes]");
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < samples; ++i)
    out.push_back(static_cast<std::int32_t>(largest(row_of(found->second, i))));
  return out;
}

std::vector<std::int32_t> EvalPrediction::labels(std::string_view name) const {
  require(dataset != nullptr,
          "the data comes from flags, and the task scores it; return eval.scores");
  std::vector<std::int32_t> out;
  each_sample(*dataset, [&](std::int64_t i, const Features& sample) {
    if (i >= samples) return false;
    const auto found = sample.find(name);
    const auto* const label =
        found == sample.end() ? nullptr : std::get_if<std::int32_t>(&found->second);
    require(label != nullptr, "sample ", i, " of the dataset has no feature '", name,
            "' that is one i32");
    out.push_back(*label);
    return true;
  });
  return out;
}

NamedMeans accuracy_and_f1(const std::vector<std::int32_t>& predictions,
                           const std::vector<std::int32_t>& labels) {
  require(predictions.size() == labels.size(), "there are ", predictions.size(),
          " predictions and ", labels.size(), " labels; give one for each");
  double right = 0, found = 0, predicted = 0, there = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    right += predictions[i] == labels[i];
    found += predictions[i] == 1 && labels[i] == 1;
    predicted += predictions[i] == 1;
    there += labels[i] == 1;
  }
  const double all = static_cast<double>(labels.size()), of_f1 = predicted + there;
  return {{"accuracy", all == 0 ? 0 : right / all}, {"f1", of_f1 == 0 ? 0 : 2 * found / of_f1}};
}

std::unique_ptr<Judge> own_judge(std::unique_ptr<Judge> of_task,
                                 std::shared_ptr<const MapDataset> dataset,
                                 std::function<NamedMeans(const EvalPrediction&)> metrics) {
  return std::make_unique<OwnJudge>(std::move(of_task), std::move(dataset), std::move(metrics));
}

}  // namespace tessera
