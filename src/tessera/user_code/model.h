#pragma once
/// What a template's functions deal with: batches, models and losses, as values of a graph that is
/// not computed yet.

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/models/family.h"
#include "tessera/models/task.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/optimizer.h"
#include "tessera/user_code/map_dataset.h"
#include "tessera/user_code/model_call.h"

namespace tessera {

/// The features of a dataset, each a value [batch, ...].
class Batch {
 public:
  /// `of_task`: the values are what the model's own task reads, as of the data that flags name;
  /// else model(batch) takes them as transformers' models do.
  explicit Batch(TaskValues values, bool of_task = false);
  /// Errors: Fault::Usage: no such feature; the message lists those that there are.
  Value operator[](std::string_view name) const;
  bool contains(std::string_view name) const { return values_.contains(name); }
  const TaskValues& values() const { return values_; }
  /// 1 for each sample, and 0 for rows behind the last one that is held out, whose features are 0:
  /// [batch, 1, ...] of f32, with so many dims, to multiply masks with. Errors: Fault::Usage: the
  /// data is that of the flags.
  Value is_sample(int ndim = 1) const;
  bool of_task() const { return of_task_; }

 private:
  TaskValues values_;
  Value is_sample_;
  bool of_task_;
};

/// A loss, from a scalar or from a mean over what counts. Where batches are averaged, as in a
/// validation, a mean weighs as much as counts in each, and a scalar as much as the batch has
/// samples.
class Loss {
 public:
  Loss(Mean mean) : sum_(mean.sum), count_(mean.count) {}
  Loss(Value scalar) : sum_(scalar) {}
  Value value() const { return count_.valid() ? Mean{sum_, count_}.value() : sum_; }
  bool is_scalar() const { return !count_.valid(); }
  /// Of a batch of so many samples. Errors: Fault::Usage: it is no scalar of f32.
  Mean mean(std::int64_t samples) const;

 private:
  Value sum_, count_;
};

/// What run_forward_step returns: the loss and, of a Finetuner, what run_compute_metrics is to see
/// of each sample: values [batch, ...] of f32 by name, as {"logits", logits}.
struct ModelOutput {
  ModelOutput(Loss of, std::vector<NamedValue> predicted = {})
      : loss(of), predictions(std::move(predicted)) {}
  ModelOutput(Mean mean) : loss(mean) {}
  ModelOutput(Value scalar) : loss(scalar) {}
  /// What is predicted under that name. Errors: Fault::Usage: nothing is.
  Value operator[](std::string_view name) const;
  Loss loss;
  std::vector<NamedValue> predictions;
  /// Of model(batch) whose loss is several means, these, of which none is a scalar.
  std::vector<Mean> parts = {};
};

/// The model in run_forward_step.
class Model {
 public:
  /// `called`: set to true where the model is called; nullptr: nobody asks.
  Model(const ModelConfig& config, const Task& task, const Pass& pass, bool* called = nullptr)
      : config_(config), task_(task), pass_(pass), called_(called) {}

  /// What the model's task computes of the batch: `model(**batch)` of Hugging Face. Features have
  /// the names of the task's inputs, or those that Hugging Face gives them: input_ids,
  /// attention_mask, token_type_ids; they mean what they do there (user_code/model_call.h). In
  /// particular a causal model shifts the labels.
  /// Errors: Fault::Usage: the task reads a feature that the batch lacks, or of another shape.
  ModelOutput operator()(const Batch& batch) const;
  /// The same, and "logits" as a prediction of a head that names none: [batch, s, vocabulary] of
  /// each sample, which is much where all that is held out is predicted.
  ModelOutput with_logits(const Batch& batch) const;
  /// The batch of a program and what transformers' models take where it is not given: types of 0,
  /// masks of 1, the last place that is not masked; rows of pixels are cut to patches. With
  /// `labels` those too, which do not count.
  Batch filled(const Batch& batch, bool labels) const;
  /// Whether the batch has all labels that the model's loss reads.
  bool has_labels(const Batch& batch) const;
  /// Logits [b, s, vocabulary] of token ids [b, s], of a model that writes text.
  Value logits(Value ids) const;
  /// Its sizes, for layers of one's own, and how they are run.
  const ModelConfig& config() const { return config_; }
  const Pass& pass() const { return pass_; }

 private:
  Value read(const Batch& batch, const CallInput& asked) const;
  const ModelConfig& config_;
  const Task& task_;
  const Pass& pass_;
  bool* called_;
};

/// A model, before there is a graph: which family, with which sizes and weights.
class ModelChoice {
 public:
  /// The one that the flags tell: --preset, --family, their sizes, --init-from.
  ModelChoice() = default;
  /// A family, the library's by name or one of the program's own, which outlives it, with the
  /// sizes that flags tell.
  explicit ModelChoice(const FamilyRef& family) : family_(&*family) {}
  /// The model in a folder of Hugging Face or in a checkpoint, by its path or its name, or the one
  /// that flags tell.
  static ModelChoice from_pretrained(std::string name);
  /// None: run_forward_step computes with layers of its own, from the batch to the loss. Flags of
  /// sizes are for these to read, and there are no layers that pipelines could cut.
  static ModelChoice own_layers();

  const ModelFamily* family() const { return family_; }
  /// What it says, where neither flags nor a preset do; config.families has its family by name.
  void apply(RunConfig& config) const;

 private:
  const ModelFamily* family_ = nullptr;
  std::string pretrained_;
};

/// What model_optimizer_lr_scheduler_provider returns. Without an optimizer or a schedule it is
/// what flags tell.
struct Provided {
  ModelChoice model = {};
  std::optional<OptimizerConfig> optimizer = std::nullopt;
  std::optional<ScheduleConfig> lr_scheduler = std::nullopt;
};

}  // namespace tessera
