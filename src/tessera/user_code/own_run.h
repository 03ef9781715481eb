#pragma once
/// The room `user_code`: runs whose data, model, loss or scores are a program's own functions.
/// For: what such functions are given and return, and a configuration that calls them.
/// Not for: flags and scripts (rapidformer), or how other languages call this (c_api).
/// Rejected: a training loop beside that of `train`: all flags hold because it is an ordinary run.
///
/// A run whose data, model and loss are a program's own functions: an ordinary configuration, with
/// families that have the program's task in place of their own.

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/user_code/eval_prediction.h"
#include "tessera/user_code/map_dataset.h"
#include "tessera/user_code/model.h"

namespace tessera {

/// The functions of a template.
struct OwnFunctions {
  std::function<Datasets()> datasets;
  std::function<Provided()> provide;
  /// May be called from several threads, one at a time.
  std::function<ModelOutput(const Batch& batch, const Model& model)> forward;
  /// Scores of what was predicted of the held-out samples; none: nothing is scored.
  std::function<NamedMeans(const EvalPrediction& eval)> metrics = nullptr;
  bool shuffled = false;     // samples that train
  bool reads_ahead = false;  // samples of the next step are read while one runs
  /// `forward` is model(batch): features that the model does not read are left out, which is told,
  /// and a loss of several means is measured by each of them.
  bool drops_unread = false;
  bool counts_classes = true;       // where nothing says them, of the labels that train
  bool scores_validations = false;  // metrics of each validation, not of those after epochs alone
};

class OwnRun {
 public:
  /// Calls `datasets` and `provide`. `config` is what flags say.
  OwnRun(RunConfig config, OwnFunctions functions);

  /// What to train; refers to this object.
  const RunConfig& config() const { return config_; }

 private:
  struct Family;
  Task task_over(const ModelConfig& config, const ModelFamily& base) const;
  std::vector<TaskMean> loss_means(const Task& task) const;
  void take_samples(Task& task, const ModelConfig& config) const;
  static void require_all_read(const TaskValues& inputs, const ModelConfig& model,
                               const Task& task);
  void require_padding_told(const TaskValues& inputs, const std::vector<TaskInput>& known,
                            const Loss& loss) const;
  void take_judge(Task& task) const;
  void take_families();
  void take_datasets();
  void take_lengths();

  RunConfig config_;
  OwnFunctions functions_;
  Datasets datasets_;  // collated
  Provided provided_;
  std::vector<std::shared_ptr<const Family>> families_;
  mutable std::mutex forwarding_;
};

}  // namespace tessera
