#include "tessera/rapidformer/templates.h"

#include <atomic>
#include <filesystem>
#include <optional>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/config/output_folder.h"
#include "tessera/launch/ranks.h"
#include "tessera/train/best_checkpoint.h"
#include "tessera/user_code/named_function.h"
#include "tessera/user_code/own_evaluation.h"

namespace tessera {

namespace {

/// The checkpoint with the lowest validation loss, where there is one, else the last.
std::string weights_to_test(const RunConfig& config) {
  std::error_code ignored;
  const std::filesystem::path best = std::filesystem::path(checkpoints_folder(config)) / kBestLink;
  return std::filesystem::exists(best, ignored) ? best.string() : config.output;
}

/// Rows to test are filled up as those that trained, which may be longer.
void take_lengths(RunConfig& config, const RunConfig& of) {
  config.model.context = of.model.context;
  config.model.source_context = of.model.source_context;
  for (const char* const field : {"context", "source-context"}) config.defaulted.erase(field);
}

void test_model(AskedTraining asked, OwnFunctions functions, const Datasets& data,
                Console& console) {
  functions.datasets = [data]() -> Datasets { return {data.test, data.test, {}, data.collate}; };
  functions.provide = [] { return Provided(); };
  const std::atomic<bool> stop = false;
  const OwnEvaluated found = evaluate_own(asked, console, std::move(functions), stop);
  console.out << " test: " << found.samples << " samples, loss " << found.loss;
  for (const auto& [name, score] : found.scores) console.out << ", " << name << " " << score;
  console.out << "\n";
}

}  // namespace

int TrainingTemplate::train() {
  return engine_.run_as_is([&] {
    AskedTraining asked = engine_.asked();
    asked.problems.raise();
    Datasets data;
    OwnFunctions mine = named_functions();
    mine.datasets = [&data, provide = mine.datasets] { return data = provide(); };
    const OwnRun run(asked.config, mine);
    asked.config = run.config();
    std::optional<RunConfig> ended;  // none: it has not come to its end, or not on this rank
    asked.at_end = [&ended, usual = asked.at_end](const TrainResult& result,
                                                  const RunConfig& config, Console& console) {
      usual(result, config, console);
      if (result.ending == Ending::Finished) ended = config;
    };
    const int code = run_training(asked, engine_.console());
    if (code != 0 || !ended || data.test == nullptr) return code;
    if (launched_as(0).how != Launched::Alone) {
      engine_.console().err << "notice: on launched ranks the test dataset is not tested\n";
      return code;
    }
    AskedTraining tested = engine_.asked();
    tested.config.init_from = weights_to_test(*ended);
    if (data.collate) take_lengths(tested.config, *ended);
    test_model(std::move(tested), named_functions(), data, engine_.console());
    return code;
  });
}

OwnFunctions TrainingTemplate::named_functions() {
  OwnFunctions out = functions();
  const std::string type = name_of_type(typeid(*this));
  const auto name = [&](const char* function) { return type + "::" + function; };
  out.datasets = naming(name("train_valid_test_datasets_provider"), out.datasets);
  out.provide =
      naming(name("model_optimizer_lr_scheduler_provider"),
             std::function<Provided()>([this] { return model_optimizer_lr_scheduler_provider(); }));
  out.forward =
      naming(name("run_forward_step"), std::function<ModelOutput(const Batch&, const Model&)>(
                                           [this](const Batch& batch, const Model& model) {
                                             return run_forward_step(batch, model);
                                           }));
  if (out.metrics) out.metrics = naming(name("run_compute_metrics"), out.metrics);
  return out;
}

OwnFunctions Pretrainer::functions() {
  OwnFunctions out;
  out.datasets = [this] { return train_valid_test_datasets_provider(num_samples(get_args())); };
  return out;
}

OwnFunctions Finetuner::functions() {
  OwnFunctions out;
  out.datasets = [this] { return train_valid_test_datasets_provider(); };
  out.metrics = [this](const EvalPrediction& eval) { return run_compute_metrics(eval); };
  out.shuffled = true;
  return out;
}

}  // namespace tessera
