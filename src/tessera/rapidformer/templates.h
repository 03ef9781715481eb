#pragma once
/// Templates of training programs, as Rapidformer's: a user script derives from one, writes its
/// functions and calls train(). docs/guides/cpp-script.md shows them.
///
/// What the functions describe is trained as `tessera train` trains its own tasks: all flags hold,
/// for data and tensor parallelism, pipelines, ZeRO, precision, recomputing, offloading,
/// checkpoints and resuming.

#include "tessera/rapidformer/engine.h"
#include "tessera/user_code/map_dataset.h"
#include "tessera/user_code/model.h"
#include "tessera/user_code/own_run.h"
#include "tessera/user_code/text_features.h"

namespace tessera {

/// What both templates have.
class TrainingTemplate {
 public:
  explicit TrainingTemplate(RapidformerEngine& engine) : engine_(engine) {}
  virtual ~TrainingTemplate() = default;
  TrainingTemplate(const TrainingTemplate&) = delete;
  TrainingTemplate& operator=(const TrainingTemplate&) = delete;

  /// Trains as the flags say, and returns the exit code of main(). What is wrong is printed; an
  /// error in a function of the template names it.
  int train();

 protected:
  /// Which model, and what updates it; unless it is overridden, all of that is what flags tell.
  virtual Provided model_optimizer_lr_scheduler_provider() { return {}; }
  /// The loss of a batch. It is called once for each program that is compiled, on each device, with
  /// values that are not computed yet: it describes the loss, and no step calls it again.
  virtual ModelOutput run_forward_step(const Batch& batch, const Model& model) = 0;

  const RunConfig& get_args() const { return engine_.args(); }
  /// That which flags name, or that of the folder whose weights the run begins with. Errors: as of
  /// tokenizer_of.
  Tokenizer get_tokenizer() const { return tokenizer_of(engine_.args()); }
  const Logger& get_logger() const { return engine_.logger(); }
  Timers& get_timers() { return engine_.timers(); }

 private:
  virtual OwnFunctions functions() = 0;
  OwnFunctions named_functions();
  RapidformerEngine& engine_;
};

/// Trains for so many steps on samples in the order of their dataset.
class Pretrainer : public TrainingTemplate {
 public:
  using TrainingTemplate::TrainingTemplate;
  int pretrain() { return train(); }

 protected:
  /// The data; `wanted` samples are as many as the run takes.
  virtual Datasets train_valid_test_datasets_provider(const NumSamples& wanted) = 0;

 private:
  OwnFunctions functions() override;
};
using PreTrainer = Pretrainer;

/// Trains for so many epochs on samples in a new order for each, and scores what it predicts of the
/// held-out ones.
class Finetuner : public TrainingTemplate {
 public:
  using TrainingTemplate::TrainingTemplate;
  int finetune() { return train(); }

 protected:
  virtual Datasets train_valid_test_datasets_provider() = 0;
  /// Scores by name, for the screen and metrics.jsonl: after each epoch, on one device, of what was
  /// predicted on all.
  virtual NamedMeans run_compute_metrics(const EvalPrediction& eval) { return eval.scores; }

 private:
  OwnFunctions functions() override;
};

}  // namespace tessera
