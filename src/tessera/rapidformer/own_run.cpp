#include "tessera/rapidformer/own_run.h"

#include <algorithm>
#include <utility>

#include "tessera/base/text.h"

namespace tessera {

/// A family with the program's task. The functions of a family are given the configuration, whose
/// family is this object.
struct OwnRun::Family : ModelFamily {
  Family(const ModelFamily& of, const OwnRun& by) : ModelFamily(of), base(of), run(by) {
    replaces = true;
    for (FamilyTask& task : own_tasks) {
      if (by.datasets_.train) task.of_rows = false;
      task.make = [](const ModelConfig& config) -> Task {
        const auto& own = static_cast<const Family&>(*config.family);
        return own.run.task_over(config, own.base);
      };
    }
    tasks = own_tasks;
  }
  const ModelFamily& base;
  const OwnRun& run;
  std::vector<FamilyTask> own_tasks{base.tasks.begin(), base.tasks.end()};
};

namespace {

bool is_token_row(const TaskInput& input) {
  return input.dtype == DType::I32 && input.sample.ndim() > 0;
}

/// Of the row that a model of the library reads; 0: there is none.
std::int64_t length_of_ids(const MapDataset& dataset) {
  const Features first = dataset.get(0);
  for (const char* const name : {"ids", "input_ids"}) {
    const auto found = first.find(name);
    if (found == first.end()) continue;
    if (const auto* const ids = std::get_if<std::vector<std::int32_t>>(&found->second))
      return std::ssize(*ids);
  }
  return 0;
}

/// One above the greatest label; 0: samples have no label that is one number.
std::int64_t count_classes(const MapDataset& dataset) {
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Features sample = dataset.get(i);
    const auto found = sample.find("labels");
    const auto* const label =
        found == sample.end() ? nullptr : std::get_if<std::int32_t>(&found->second);
    if (label == nullptr) return 0;
    out = std::max<std::int64_t>(out, std::int64_t{1} + *label);
  }
  return out;
}

}  // namespace

OwnRun::OwnRun(RunConfig config, OwnFunctions functions)
    : config_(std::move(config)), functions_(std::move(functions)) {
  datasets_ = functions_.datasets();
  provided_ = functions_.provide();
  require(datasets_.train || !datasets_.valid,
          "train_valid_test_datasets_provider returns a dataset to validate on and none to train ",
          "on; return both, or neither where flags name the data");
  take_families();
  provided_.model.apply(config_);
  if (provided_.optimizer) config_.optimizer = *provided_.optimizer;
  if (provided_.lr_scheduler) config_.optimizer.schedule = *provided_.lr_scheduler;
  if (datasets_.train) take_datasets();
}

void OwnRun::take_datasets() {
  config_.program_data = datasets_.digest();
  config_.valid_data.clear();
  if (!datasets_.valid) config_.held_out = 0;
  ModelConfig& model = config_.model;
  if (model.vocabulary == 0 && tokenizer_choice(config_).none() &&
      std::ranges::none_of(inputs_of(*datasets_.train, model), is_token_row))
    model.vocabulary = 1;  // nothing reads tokens
  const std::int64_t length = length_of_ids(*datasets_.train);
  if (length > 0 && config_.untold.erase("context") > 0) model.context = length;
  const FamilyTask* const task = find_task(model);
  if (task == nullptr || task->head.empty() || !config_.untold.contains("classes")) return;
  if ((model.classes = count_classes(*datasets_.train)) > 0) config_.untold.erase("classes");
}

void OwnRun::take_families() {
  OwnFamilies bases = config_.families;
  const ModelFamily* const own = provided_.model.family();
  const auto known = all_families(bases);
  if (own != nullptr && std::ranges::find(known, own) == known.end()) bases.push_back(own);
  config_.families.clear();
  const std::string_view name = config_.model.family.name();
  for (const ModelFamily* base : all_families(bases)) {
    families_.push_back(std::make_shared<const Family>(*base, *this));
    config_.families.push_back(families_.back().get());
    if (base->name == name) config_.model.family = *families_.back();
  }
}

Task OwnRun::task_over(const ModelConfig& config, const ModelFamily& base) const {
  ModelConfig of_base = config;
  of_base.family = base;
  const Task task = task_of(of_base);
  Task out = task;
  out.means = {{kLossMean}};
  if (datasets_.train) take_samples(out, config);
  take_judge(out);
  out.measure = [this, of_base, task](const TaskValues& inputs, const Pass& pass) -> Measured {
    const std::lock_guard<std::mutex> one_at_a_time(forwarding_);
    ModelOutput output = functions_.forward(Batch(inputs), Model(of_base, task, pass));
    if (!functions_.metrics) output.predictions.clear();
    return {{output.loss.mean(inputs.begin()->second.shape()[0])}, std::move(output.predictions)};
  };
  return out;
}

void OwnRun::take_samples(Task& task, const ModelConfig& config) const {
  task.inputs = inputs_of(*datasets_.train, config);
  task.data = DataKind::Program;
  task.token_files = std::nullopt;
  task.reads_pairs = task.packs_documents = task.reads_labels = false;
  task.longest_sample = nullptr;
  task.train_samples = [train = datasets_.train, shuffled = functions_.shuffled](
                           const Dataset&, const SampleChoices& choices) {
    return map_samples(train, {.seed = choices.seed, .shuffled = shuffled});
  };
  task.valid_samples = [valid = datasets_.valid](const Dataset&, const SampleChoices& choices) {
    return map_samples(valid, {.held_out = true, .most = choices.most});
  };
}

void OwnRun::take_judge(Task& task) const {
  if (!functions_.metrics) {
    task.judge = nullptr;
    return;
  }
  task.judge = [judge = task.judge, valid = datasets_.valid,
                metrics = functions_.metrics](const Dataset& data) -> std::unique_ptr<Judge> {
    return own_judge(judge && !valid ? judge(data) : nullptr, valid, metrics);
  };
}

}  // namespace tessera
