#include "tessera/user_code/own_run.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/train/prepare.h"
#include "tessera/user_code/collated_dataset.h"
#include "tessera/user_code/read_ahead.h"

namespace tessera {

/// A family with the program's task. The functions of a family are given the configuration, whose
/// family is this object.
struct OwnRun::Family : ModelFamily {
  Family(const ModelFamily& of, const OwnRun& by) : ModelFamily(of), base(of), run(by) {
    replaces = true;
    for (FamilyTask& task : own_tasks) {
      if (by.datasets_.train) task.rows = RowsKind::None;
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

constexpr std::string_view kIds[] = {"ids", "input_ids"};

/// The input of a model that a feature is; nullptr: none.
const CallInput* same_input(const ModelCall& call, const TaskInput& feature) {
  const CallInput* const same = find_input(call, feature.name);
  const bool one = same != nullptr && same->input.sample == Shape({1}) && feature.sample == Shape();
  const bool fits = same != nullptr && same->input.dtype == feature.dtype &&
                    (one || same->input.sample.ndim() == feature.sample.ndim());
  return fits ? same : nullptr;
}

/// The inputs of samples that model(batch) takes, with the numbers that it takes; of others, ids.
std::vector<TaskInput> known_inputs(const std::vector<TaskInput>& inputs, const ModelCall& call) {
  std::vector<TaskInput> out;
  for (const TaskInput& input : inputs) {
    const CallInput* const same = same_input(call, input);
    if (same == nullptr && std::ranges::find(kIds, input.name) == std::end(kIds)) continue;
    out.push_back(input);
    if (same == nullptr) continue;
    out.back().values = same->input.values;
    out.back().ignorable = input.ignorable || same->input.ignorable;
  }
  return out;
}

/// The inputs of collated samples that are rows of a text, which become as long as the model reads
/// them.
std::vector<RowsOfText> take_texts(std::vector<TaskInput>& inputs, const ModelConfig& config,
                                   const ModelCall& call) {
  RowsOfText own{{}, "--seq-length"}, source{{}, "--source-context"};
  for (TaskInput& input : inputs) {
    const CallInput* const same = same_input(call, input);
    if (same == nullptr || !is_token_row(same->input)) continue;
    const bool of_source = is_of_source(config, same->input.name);
    if (same->input.sample != Shape{of_source ? config.source() : config.context}) continue;
    input.sample = same->input.sample;
    (of_source ? source : own).features.push_back(input.name);
  }
  std::vector<RowsOfText> out{own, source};
  std::erase_if(out, [](const RowsOfText& rows) { return rows.features.empty(); });
  return out;
}

/// Nothing tells what fills up rows of ids.
bool reads_what_fills_up(const std::vector<TaskInput>& known, const ModelConfig& config,
                         const ModelCall& call) {
  const auto any = [&](auto holds) {
    return std::ranges::any_of(known, [&](const TaskInput& input) {
      const CallInput* const same = same_input(call, input);
      return same != nullptr && holds(input, same->input);
    });
  };
  const bool masked =
      any([](const TaskInput&, const TaskInput& its) { return its.name == "mask"; });
  const bool labelled = any([](const TaskInput& input, const TaskInput&) {
    return input.ignorable && input.sample.ndim() > 0;
  });
  return !masked && (reads_padding(config) || !labelled);
}

/// Takes away the inputs that model(batch) does not take, whose names it returns.
std::vector<std::string> take_unread(std::vector<TaskInput>& inputs, const ModelCall& call) {
  std::vector<std::string> out;
  std::erase_if(inputs, [&](const TaskInput& input) {
    const bool unread = input.name != kIsSample && find_input(call, input.name) == nullptr;
    if (unread) out.push_back(input.name);
    return unread;
  });
  return out;
}

/// Whether something was computed of the value of an input.
bool is_read(const Value& input) {
  const Graph& graph = input.builder().so_far();
  for (NodeId id = 0; id < graph.size(); ++id)
    if (std::ranges::find(graph.node(id).inputs, input.id()) != graph.node(id).inputs.end())
      return true;
  return false;
}

/// How long rows of i32 are, by their features.
using IdLengths = std::map<std::string, std::int64_t, std::less<>>;

void take_longer(IdLengths& lengths, const Features& sample) {
  for (const auto& [name, feature] : sample) {
    const auto* const ids = std::get_if<std::vector<std::int32_t>>(&feature);
    if (ids == nullptr) continue;
    std::int64_t& longest = lengths[name];
    longest = std::max(longest, std::ssize(*ids));
  }
}

/// Of the first sample, which those that nothing collates are like; else of the longest rows.
IdLengths id_lengths(const Datasets& data, const Features& first) {
  IdLengths out;
  take_longer(out, first);
  if (!data.collate) return out;
  for (const auto& dataset : {data.train, data.valid, data.test}) {
    if (!dataset || dataset->in_order()) continue;
    each_sample(*dataset, [&](std::int64_t, const Features& sample) {
      take_longer(out, sample);
      return true;
    });
  }
  return out;
}

/// Of the first of these features that samples have; 0: there is none.
std::int64_t length_of(const IdLengths& lengths, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto found = lengths.find(name); found != lengths.end()) return found->second;
  return 0;
}

/// One above the greatest label, or the fractions of one; 0: samples have neither.
std::int64_t count_classes(const MapDataset& dataset) {
  const Features first = sample_of(dataset, 0);
  const auto labels = first.find("labels");
  if (labels == first.end()) return 0;
  if (std::holds_alternative<float>(labels->second)) return 1;
  if (const auto* const row = std::get_if<std::vector<float>>(&labels->second))
    return std::ssize(*row);
  if (dataset.in_order()) return 0;
  std::int64_t out = 0;
  each_sample(dataset, [&](std::int64_t, const Features& sample) {
    const auto found = sample.find("labels");
    const auto* const label =
        found == sample.end() ? nullptr : std::get_if<std::int32_t>(&found->second);
    out = label == nullptr ? 0 : std::max<std::int64_t>(out, std::int64_t{1} + *label);
    return label != nullptr;
  });
  return out;
}

}  // namespace

OwnRun::OwnRun(RunConfig config, OwnFunctions functions)
    : config_(std::move(config)), functions_(std::move(functions)) {
  datasets_ = collated(functions_.datasets());
  provided_ = functions_.provide();
  require(datasets_.train || !datasets_.valid,
          "train_valid_test_datasets_provider returns a dataset to validate on but none to train ",
          "on; return both, or neither if flags name the data");
  take_families();
  provided_.model.apply(config_);
  if (provided_.optimizer) config_.optimizer = *provided_.optimizer;
  if (provided_.lr_scheduler) config_.optimizer.schedule = *provided_.lr_scheduler;
  if (datasets_.train) take_datasets();
}

void OwnRun::take_datasets() {
  ModelConfig& model = config_.model;
  const std::vector<TaskInput> inputs = inputs_of(datasets_, model);
  config_.program_data = datasets_.digest();
  config_.valid_data.clear();
  config_.test_data.clear();
  if (!datasets_.valid) config_.held_out = 0;
  if (model.vocabulary == 0 && tokenizer_choice(config_).none() &&
      std::ranges::none_of(inputs, is_token_row))
    model.vocabulary = 1;  // nothing reads tokens
  take_lengths();
  const FamilyTask* const task = find_task(model);
  if (!functions_.counts_classes || task == nullptr || task->head.empty() ||
      (model.classes > 0 && !config_.defaulted.contains("classes")))
    return;
  if ((model.classes = count_classes(*datasets_.train)) > 0) config_.defaulted.erase("classes");
}

/// As long as the rows that a model of the library reads.
void OwnRun::take_lengths() {
  ModelConfig& model = config_.model;
  const Features first = sample_of(*datasets_.train, 0);
  const auto take = [&](const char* field, std::int64_t* to, std::int64_t length) {
    if (length > 0 && config_.defaulted.erase(field) > 0) *to = length;
  };
  // The family of a folder is not known yet.
  const FamilyTask* const task = find_task(model);
  const bool writes = model.task == kSeq2SeqLm.name ||
                      (task != nullptr && task->writes == Writes::TextsFromSources) ||
                      first.contains("source") || first.contains("decoder_input_ids");
  const auto open = [&](const char* field) { return config_.defaulted.contains(field); };
  if (!open("context") && !(writes && open("source-context"))) return;
  const IdLengths rows = id_lengths(datasets_, first);
  if (!writes) return take("context", &model.context, length_of(rows, {"ids", "input_ids"}));
  take("context", &model.context, length_of(rows, {"ids", "decoder_input_ids", "labels"}));
  take("source-context", &model.source_context, length_of(rows, {"source", "input_ids"}));
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
  out.means = loss_means(task);
  if (datasets_.train) take_samples(out, of_base);
  take_judge(out);
  const bool in_parts = out.means.size() > 1;
  out.measure = [this, of_base, task, in_parts, known = out.inputs](const TaskValues& inputs,
                                                                    const Pass& pass) -> Measured {
    const std::lock_guard<std::mutex> one_at_a_time(forwarding_);
    const std::int64_t batch = inputs.begin()->second.shape()[0];
    bool called = false;
    ModelOutput output = functions_.forward(Batch(inputs, /*of_task=*/!datasets_.train),
                                            Model(of_base, task, pass, &called));
    if (called && datasets_.train) require_all_read(inputs, of_base, task);
    for (const auto& [name, value] : output.predictions)
      require(value.shape().ndim() >= 1 && value.shape()[0] == batch, "run_forward_step predicts '",
              name, "' of shape ", value.shape(), ", but the batch has ", batch,
              " samples; return one row per sample: [", batch, ", ...]");
    if (!functions_.metrics) output.predictions.clear();
    if (in_parts) return {std::move(output.parts), std::move(output.predictions)};
    const bool validates = !pass.step.valid();
    if (validates && datasets_.valid) require_padding_told(inputs, known, output.loss);
    return {{output.loss.mean(batch)}, std::move(output.predictions)};
  };
  return out;
}

/// A loss of several means is theirs only where it is model(batch): a validation adds up each.
std::vector<TaskMean> OwnRun::loss_means(const Task& task) const {
  std::vector<TaskMean> weighted;
  if (functions_.drops_unread)
    std::ranges::copy_if(task.means, std::back_inserter(weighted),
                         [](const TaskMean& mean) { return mean.weight != 0; });
  return weighted.size() > 1 ? weighted : std::vector<TaskMean>{{kLossMean}};
}

/// A feature that neither the model nor the program reads would be dropped without a word.
void OwnRun::require_all_read(const TaskValues& inputs, const ModelConfig& model,
                              const Task& task) {
  std::vector<std::string> taken;
  for (const auto& [input, hub, needed] : model_call(model, task).inputs)
    taken.push_back(hub == input.name ? input.name : text(input.name, " (", hub, ")"));
  for (const auto& [name, value] : inputs)
    require(name == kIsSample || is_read(value), "model(batch): the batch has '", name,
            "', and family ", model.family, " with task ", task.name,
            " does not read it: it reads ", join(taken),
            "; remove it from get(), or compute with batch[\"", name, "\"]");
}

/// What fills up the last batch of a validation must not count.
void OwnRun::require_padding_told(const TaskValues& inputs, const std::vector<TaskInput>& known,
                                  const Loss& loss) const {
  const std::int64_t batch = inputs.at(kIsSample).shape()[0], most = valid_choices(config_).most,
                     size = size_of(*datasets_.valid),
                     held_out = most > 0 ? std::min(size, most) : size;
  const bool knows_padding =
      !loss.is_scalar() && std::ranges::any_of(known, [&](const TaskInput& input) {
        return (input.ignorable || input.name == kIsSample) && is_read(inputs.at(input.name));
      });
  require(knows_padding || held_out % batch == 0, "the last validation batch has ",
          held_out % batch, " of ", batch, " samples, as ", held_out, " are held out, and ",
          loss.is_scalar()
              ? "a scalar loss would count its padding"
              : "the loss reads neither labels nor batch.is_sample(), which mark padding",
          "; return masked_mean(losses, batch.is_sample()) from run_forward_step, or hold out a ",
          "multiple of ", batch, " samples");
}

void OwnRun::take_samples(Task& task, const ModelConfig& config) const {
  const ModelCall call = model_call(config, task);
  std::vector<TaskInput> inputs = inputs_of(datasets_, config);
  MapSamplesOptions how;
  if (functions_.drops_unread) how.left_out = take_unread(inputs, call);
  if (!how.left_out.empty())
    how.notice = text("the model does not read ", join(how.left_out),
                      how.left_out.size() == 1 ? " of the dataset, which is left out"
                                               : " of the dataset, which are left out");
  if (datasets_.collate) how.texts = take_texts(inputs, config, call);
  const std::vector<TaskInput> known = how.known = known_inputs(inputs, call);
  how.padding_is_read = reads_what_fills_up(known, config, call);
  for (TaskInput& input : inputs) {
    const auto its = std::ranges::find(known, input.name, &TaskInput::name);
    if (its != known.end()) input = *its;
  }
  task.inputs = std::move(inputs);
  task.data = DataKind::Program;
  task.token_files = std::nullopt;
  task.reads_pairs = task.packs_documents = false;
  task.longest_sample = nullptr;
  // What is read is known of the inputs, whatever the task makes of them later.
  const auto ahead = [inputs = task.inputs, on = functions_.reads_ahead](
                         std::unique_ptr<Samples> samples, std::int64_t most) {
    return on ? read_ahead(std::move(samples), inputs, most) : std::move(samples);
  };
  task.train_samples = [train = datasets_.train, how, ahead, shuffled = functions_.shuffled](
                           const Dataset&, const SampleChoices& choices) {
    MapSamplesOptions mine = how;
    mine.seed = choices.seed;
    mine.shuffled = shuffled && !train->in_order();
    return ahead(map_samples(train, mine), choices.in_all);
  };
  task.valid_samples = [valid = datasets_.valid, how, ahead](const Dataset&,
                                                             const SampleChoices& choices) {
    MapSamplesOptions mine = how;
    mine.notice.clear();
    mine.held_out = true;
    mine.most = choices.most;
    auto samples = map_samples(valid, mine);
    const std::int64_t size = samples->size();
    return ahead(std::move(samples), size);
  };
}

void OwnRun::take_judge(Task& task) const {
  if (!functions_.metrics) {
    task.judge = nullptr;
    return;
  }
  task.judges_validations = functions_.scores_validations;
  task.judge = [judge = task.judge, valid = datasets_.valid,
                metrics = functions_.metrics](const Dataset& data) -> std::unique_ptr<Judge> {
    return own_judge(judge && !valid ? judge(data) : nullptr, valid, metrics);
  };
}

}  // namespace tessera
