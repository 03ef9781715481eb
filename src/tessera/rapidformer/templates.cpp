#include "tessera/rapidformer/templates.h"

#include <utility>

#include "tessera/base/text.h"
#include "tessera/user_code/named_function.h"

namespace tessera {

int TrainingTemplate::train() {
  return engine_.run_as_is([&] {
    AskedTraining asked = engine_.asked();
    asked.problems.raise();
    const OwnRun run(asked.config, named_functions());
    asked.config = run.config();
    return run_training(asked, engine_.console());
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
