#include "tessera/user_code/called_model.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tessera/apps/instruction_set.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/recorded.h"
#include "tessera/data/dataset.h"
#include "tessera/launch/ranks.h"
#include "tessera/launch/take_machine.h"
#include "tessera/models/family.h"
#include "tessera/models/parallel.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/exported_tokenizer.h"
#include "tessera/train/evaluation.h"
#include "tessera/train/pretrained_start.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_source.h"
#include "tessera/train/step.h"
#include "tessera/train/task_start.h"
#include "tessera/user_code/model.h"
#include "tessera/user_code/state_parameters.h"

namespace tessera {

namespace {

/// Fields beside those of the model and kDeviceFields.
constexpr std::string_view kOtherFields[] = {
    "init-from",  "preset", "tokenizer", "tokenizer-type", "vocab-file",
    "merge-file", "seed",   "bf16",      "fp16",           "mixed-precision"};

/// Programs that are kept: a few sizes of batches, and one that writes.
constexpr std::size_t kMostReady = 3;

/// A size of a program that computes `size`: an eighth more at most.
std::int64_t rounded(std::int64_t size) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
  const std::int64_t step = std::max<std::int64_t>(power / 8, 1);
  return (size + step - 1) / step * step;
}

/// model(batch) of these inputs.
Graph call_graph(const ModelConfig& config, const CallInputs& inputs, std::int64_t rows) {
  Builder builder;
  const Task task = task_of(config);
  TaskValues values;
  for (const CallInput& one : model_call(config, task).inputs) {
    if (!inputs.names().contains(one.input.name)) continue;
    Shape shape{rows};
    for (const std::int64_t size : one.input.sample) shape.push_back(size);
    values.emplace(one.input.name, builder.batch(one.input.name, {one.input.dtype, shape, {}}));
  }
  const ModelOutput out = Model(config, task, {}).with_logits(Batch(std::move(values)));
  if (inputs.has_labels()) {
    const Mean mean = out.loss.mean(rows);
    builder.output(Output::Kind::Metric, kLossMean, mean.value());
  }
  for (const NamedValue& prediction : out.predictions)
    builder.output(Output::Kind::Metric, prediction_metric(prediction.name), prediction.value);
  return builder.finish();
}

/// What transformers calls what a metric is a prediction of.
std::string hub_prediction(std::string_view metric) {
  constexpr std::string_view kPrediction = "prediction of ";
  const std::string_view name = metric.substr(kPrediction.size());
  return name == "start" || name == "end" ? text(name, "_logits") : std::string(name);
}

/// A program's result without what its sizes add.
HostTensor without_padding(const HostTensor& from, const CallSizes& sizes, bool of_tokens) {
  Shape shape = from.shape();
  shape[0] = sizes.rows;
  if (of_tokens) shape[1] = sizes.length;
  HostTensor out(DType::F32, shape);
  const std::int64_t each = shape.numel() / shape[0], theirs = from.numel() / from.shape()[0];
  for (std::int64_t row = 0; row < shape[0]; ++row)
    std::copy_n(from.data<float>() + row * theirs, each, out.data<float>() + row * each);
  return out;
}

/// The smallest call.
NamedTensors least_call(const ModelConfig& config) {
  NamedTensors out;
  const Task task = task_of(config);
  for (const TaskInput& input : task.inputs) {
    if (input.name != "ids" && input.name != "source" && input.name != "patches") continue;
    Shape shape = input.sample;
    if (input.dtype == DType::I32) shape[shape.ndim() - 1] = 1;
    Shape batch{1};
    for (const std::int64_t size : shape) batch.push_back(size);
    out.emplace(input.name, HostTensor(input.dtype, batch));
  }
  return out;
}

}  // namespace

std::vector<Flag> model_flags() {
  std::vector<Flag> out;
  for (Flag& flag : field_flags()) {
    const Field* const field = find_field(flag.name).field;
    const auto among = [&](const auto& names) {
      return std::ranges::find(names, flag.name) != std::end(names);
    };
    if (field != nullptr &&
        (field->group == FieldGroup::Model || among(kDeviceFields) || among(kOtherFields)))
      out.push_back(std::move(flag));
  }
  return out;
}

AskedModel read_model_flags(const Arguments& arguments, const OwnFamilies& families) {
  AskedModel out;
  const ParsedFlags parsed = parse_flags(arguments, model_flags(), out.problems);
  if (!parsed.words.empty())
    out.problems.add(text("'", parsed.words.front(), "' belongs to no flag"));
  out.config = configure(parsed, out.problems, out.notices, families);
  return out;
}

CalledModel::CalledModel(AskedModel asked)
    : config_(std::move(asked.config)), notices_(std::move(asked.notices)) {
  Problems problems = std::move(asked.problems);
  agree_on_choices(config_, nullptr, problems);
  take_machine(config_, nullptr, problems);
  InitModel init = take_init_model(config_, problems, notices_);
  problems.raise();
  require(config_.model.vocabulary > 0 || !reads_field(config_.model, "vocab-size"),
          "vocab-size is missing: a new model has no tokenizer that says it; give vocab-size");
  complete(config_);
  problems.add(tessera::problems(config_.model));
  if (problems.empty()) problems.add(tessera::problems(config_.parallel, config_.model));
  problems.raise();
  const FamilyTask& task = family_task(config_.model);
  require(task.head.empty() || !reads_field(config_.model, "classes") || config_.model.classes > 0,
          "classes is 0, and nothing says how many task ", task.name, " tells apart; give classes");
  labels_ = std::move(init.labels);
  vocabulary_ = std::move(init.vocabulary);
  if (const TokenizerChoice choice = tokenizer_choice(config_); !vocabulary_ && !choice.none())
    vocabulary_ = Vocabulary::tokenizer(load_tokenizer(choice));
  take_weights(problems);
  problems.raise();
  share_cores(config_);
}

void CalledModel::take_weights(Problems& problems) {
  if (config_.init_from.empty()) return;
  const Dataset nothing = program_dataset(Vocabulary::ids(1), "");
  const auto begin_head = [&](const ModelConfig& model, const auto& weights) {
    anew_ = head_to_begin_anew(
        config_, nothing, {model, labels_, weights.path(), parameter_names(weights)}, notices_);
    if (!anew_.empty() && config_.model.classes != model.classes) labels_.clear();
  };
  problems.gather([&] {
    if (is_hub_folder(config_)) {
      pretrained_.emplace(open_pretrained(config_, OpenPretrained::Weights::Read));
      // There is no data whose tokens these could be.
      if (config_.defaulted.contains("special-tokens"))
        config_.model.special_tokens = pretrained_->config().special_tokens;
      begin_head(pretrained_->config(), *pretrained_);
      pretrained_->check_shapes(config_.model, anew_);
      hub_config_ = pretrained_->json();
      if (!vocabulary_ && config_.eod_token < 0)
        config_.eod_token = pretrained_->end_token().value_or(-1);
      return;
    }
    Source source = open_init(config_);
    begin_head(source.run.config.model, source.checkpoint);
    hub_config_ = recorded_hub_config(source.checkpoint);
    checkpoint_.emplace(std::move(source.checkpoint));
  });
}

void CalledModel::load(RankGroup& group) {
  if (std::ranges::find(group.plan().programs, kInitProgram, &ProgramPlan::name) !=
      group.plan().programs.end())
    group.run(kInitProgram);
  const std::string lacking = checkpoint_   ? group.load_weights(*checkpoint_, anew_)
                              : pretrained_ ? group.load_weights(*pretrained_, anew_)
                                            : "";
  if (!lacking.empty() && std::ranges::find(notices_, lacking) == notices_.end())
    notices_.push_back(lacking);
}

LedRanks& CalledModel::ready(const std::string& key, const RunConfig& config,
                             const std::function<LedRanks::Compile()>& compile) {
  const auto found = std::ranges::find(ready_, key, &Ready::key);
  if (found != ready_.end()) {
    std::rotate(found, found + 1, ready_.end());
    return *ready_.back().ranks;
  }
  if (ready_.size() == kMostReady) ready_.erase(ready_.begin());
  static Console console = system_console();  // of a device that hangs
  ready_.push_back(
      {key, std::make_unique<LedRanks>(
                config, compile(), [this](RankGroup& group) { load(group); }, console)});
  return *ready_.back().ranks;
}

void CalledModel::run_on(LedRanks& ranks, const std::function<void(RankGroup& group)>& work) {
  try {
    ranks.on_leader(work);
  } catch (...) {
    std::erase_if(ready_, [&](const Ready& one) { return one.ranks.get() == &ranks; });
    throw;
  }
}

RunConfig CalledModel::at_rows(RunConfig config, std::int64_t rows) const {
  const std::int64_t data = std::max<std::int64_t>(config.parallel.data(), 1);
  config.micro_batch_size = (rows + data - 1) / data;
  config.global_batch_size = config.micro_batch_size * data;
  return config;
}

CallSizes CalledModel::program_sizes(const CallSizes& sizes, bool exact) const {
  const CallSizes most = most_tokens(config_.model);
  const std::int64_t data = std::max<std::int64_t>(config_.parallel.data(), 1);
  const auto tokens = [&](std::int64_t size, std::int64_t limit) {
    // Rates of rotary positions may depend on the length.
    if (size == 0 || exact || !config_.model.rope_scaling.empty()) return size;
    // A sample of two texts has at least five.
    constexpr std::int64_t kLeast = 8;
    const std::int64_t all = std::max(rounded(size), kLeast);
    return limit > 0 ? std::min(all, limit) : all;
  };
  return {(rounded(sizes.rows) + data - 1) / data * data, tokens(sizes.length, most.length),
          tokens(sizes.source, most.source), sizes.choices};
}

LedRanks& CalledModel::ready_for(const CallInputs& inputs) {
  // The loss of an answer is over all places of its text, those of padding too.
  const bool exact = inputs.has_labels() && has_head(config_.model, TaskHead::QuestionAnswering);
  const CallSizes program = program_sizes(inputs.sizes(), exact);
  RunConfig config = at_rows(config_, program.rows);
  config.model = at_sizes(config.model, program);
  Problems problems;
  problems.add(tessera::problems(config.model));
  problems.raise();
  const std::string key =
      text(kCallProgram, " ", program.rows, " ", program.length, " ", program.source, " ",
           program.choices, inputs.has_labels() ? " with labels " : " ", join(inputs.names()));
  return ready(key, config, [&]() -> LedRanks::Compile {
    const auto setup = std::make_shared<const RunSetup>(config);
    const auto graph =
        std::make_shared<const Graph>(call_graph(config.model, inputs, program.rows));
    return [setup, graph](const Backend& backend, int rank) {
      const WantedPrograms wanted{
          .train = false, .evaluate = false, .texts = 0, .call = graph.get()};
      return compile_programs(*setup, wanted, backend, rank).plan;
    };
  });
}

NamedTensors CalledModel::call(const NamedTensors& given) {
  const CallInputs inputs(config_.model, given,
                          pretrained_ && anew_.empty() ? pretrained_->end_padding() : std::nullopt);
  const CallSizes sizes = inputs.sizes();
  const std::lock_guard<std::mutex> one_at_a_time(calling_);
  NamedTensors out;
  run_on(ready_for(inputs), [&](RankGroup& group) {
    const ProgramPlan& plan = group.plan().program(kCallProgram);
    group.run(kCallProgram, [&](BatchInputs& batch) {
      for (const NamedTensor& input : plan.batch)
        inputs.fill(input.name, input.logical, batch.fill(input.name, input.type.dtype));
    });
    for (const NamedTensor& metric : plan.metrics) {
      const HostTensor value =
          group.engine().metric(kCallProgram, metric.name).cast(DType::F32).clone();
      if (metric.name == kLossMean) {
        out.emplace(kLossMean, value);
        continue;
      }
      const std::string name = hub_prediction(metric.name);
      const bool of_tokens =
          sizes.length > 0 &&
          (value.shape().ndim() == 3 || name.starts_with("start_") || name.starts_with("end_"));
      out.emplace(name, without_padding(value, sizes, of_tokens));
    }
  });
  return out;
}

void CalledModel::with_parameters(const std::function<void(const ParameterReader&)>& read) {
  const std::lock_guard<std::mutex> one_at_a_time(calling_);
  const auto called = std::ranges::find_if(
      ready_, [](const Ready& one) { return one.key.starts_with(kCallProgram); });
  LedRanks& ranks = called != ready_.end()
                        ? *called->ranks
                        : ready_for(CallInputs(config_.model, least_call(config_.model), {}));
  run_on(ranks, [&](RankGroup& group) {
    const std::vector<CheckpointTensor> states = group.states();
    read(parameters_among(states));
    group.forget_states();
  });
}

NamedTensors CalledModel::parameters(bool names_of_hub) {
  NamedTensors out;
  with_parameters([&](const ParameterReader& parameters) {
    if (names_of_hub) {
      out = pretrained_tensors(config_.model, parameters);
      return;
    }
    for (const auto& [name, shape] : parameter_shapes(config_.model)) {
      HostTensor value(DType::F32, shape);
      parameters.read(name, {value.data<float>(), static_cast<std::size_t>(value.numel())});
      out.emplace(name, value);
    }
  });
  return out;
}

bool CalledModel::has_hub_names() const { return has_pretrained_format(config_.model); }

std::vector<std::string> CalledModel::save_pretrained(const std::string& folder,
                                                      SavePretrained how) {
  how.config = hub_config_;
  how.labels = labels_;
  how.image_processor = config_.image_processor;
  const Tokenizer* const tokenizer = vocabulary_ ? vocabulary_->made_elsewhere() : nullptr;
  if (tokenizer != nullptr) how.tokenizer = exported_files(*tokenizer);
  if (tokenizer != nullptr && has_head(config_.model, TaskHead::SequenceClassification))
    how.pad_token = exported_padding(*tokenizer, how.tokenizer);
  std::vector<std::string> out;
  with_parameters([&](const ParameterReader& parameters) {
    out = tessera::save_pretrained(folder, config_.model, parameters, how);
  });
  return out;
}

void CalledModel::write(const ModelConfig& model, std::int64_t texts,
                        const std::function<void(RankGroup& group)>& work) {
  RunConfig config = at_rows(config_, 1);
  config.model = model;
  const std::lock_guard<std::mutex> one_at_a_time(calling_);
  const std::string key = text("write ", texts, " ", model.context);
  LedRanks& ranks = ready(key, config, [&]() -> LedRanks::Compile {
    const auto setup = std::make_shared<const RunSetup>(config);
    // First values come with a call.
    std::shared_ptr<const Graph> graph;
    if (config_.init_from.empty())
      graph = std::make_shared<const Graph>(call_graph(
          at_sizes(config.model, program_sizes({1, 1, 1})),
          CallInputs(config.model, least_call(config.model), {}), program_sizes({1, 1, 1}).rows));
    return [setup, graph, texts](const Backend& backend, int rank) {
      const WantedPrograms wanted{
          .train = false, .evaluate = false, .texts = texts, .call = graph.get()};
      return compile_programs(*setup, wanted, backend, rank).plan;
    };
  });
  run_on(ranks, work);
}

}  // namespace tessera
