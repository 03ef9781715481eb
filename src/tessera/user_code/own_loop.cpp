#include "tessera/user_code/own_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tessera/apps/instruction_set.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/config/output_folder.h"
#include "tessera/data/dataset.h"
#include "tessera/files/file.h"
#include "tessera/launch/ranks.h"
#include "tessera/pretrained/save_pretrained.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/validation.h"
#include "tessera/user_code/state_parameters.h"

namespace tessera {

namespace {

/// Such a loop writes no folder of a run, so it need not be told one, and has no validations that
/// come so often that some batches have to do.
RunConfig of_loop(RunConfig config) {
  require(config.resume == "none", "resume is ", config.resume,
          ", but a custom loop has no checkpoints to resume; start from weights ",
          "with init-from, or use a template, whose runs can be resumed");
  if (config.output.empty()) config.output = "unwritten";
  if (config.defaulted.contains("eval-iters")) config.eval_iters = 0;  // gather() takes all
  return config;
}

}  // namespace

OwnLoop::OwnLoop(const AskedTraining& asked, Console& console, OwnFunctions functions)
    : run_(of_loop(asked.config), keeping_predictions(std::move(functions))) {
  require(launched_as(asked.config.parallel.devices == 1 ? 0 : asked.config.parallel.devices).how ==
              Launched::Alone,
          "a custom loop runs all devices as threads of one process, but this ",
          "process was launched as one of several; start it alone, with --devices N");
  Problems problems = asked.problems;
  RunConfig open = run_.config();
  agree_on_choices(open, nullptr, problems);
  if (auto prepared = prepare_run(std::move(open), problems))
    prepared_.emplace(std::move(*prepared));
  problems.raise();
  for (const auto& notices : {asked.notices, prepared_->notices})
    for (const std::string& notice : notices)
      if (notice.find(config().output) == std::string::npos)  // the folder of a run; there is none
        console.err << "notice: " << notice << "\n";
  setup_.emplace(config(), prepared_->task);
  samples_ = setup_->task().train_samples(*prepared_->data, sample_choices(config()));
  ranks_.emplace(
      config(),
      [this](const Backend& backend, int rank) {
        WantedPrograms wanted = wanted_programs(*setup_);
        wanted.texts = 0;
        return compile_programs(*setup_, wanted, backend, rank).plan;
      },
      [this](RankGroup& group) {
        group.run(kInitProgram);
        if (prepared_->init) group.load_weights(*prepared_->init, prepared_->anew);
        if (prepared_->pretrained) group.load_weights(*prepared_->pretrained, prepared_->anew);
      },
      console);
}

OwnFunctions OwnLoop::keeping_predictions(OwnFunctions functions) {
  functions.metrics = [this](const EvalPrediction& eval) {
    gathered_ = eval;
    return NamedMeans();
  };
  return functions;
}

std::vector<SampleBatch> OwnLoop::train_batches(std::int64_t epoch) const {
  require(epoch >= 1, "epoch ", epoch, "; they are counted from 1");
  const std::int64_t size = samples_->size(), batch = config().global_batch_size;
  const auto first_step = [&](std::int64_t of) { return ((of - 1) * size + batch - 1) / batch; };
  std::vector<SampleBatch> out;
  for (std::int64_t k = first_step(epoch); k < first_step(epoch + 1); ++k)
    out.push_back({k * batch, batch});
  return out;
}

StepRecord OwnLoop::backward(const SampleBatch& batch) {
  require(batch.count == config().global_batch_size, "a batch has ", batch.count,
          " samples, and global-batch-size is ", config().global_batch_size,
          "; take batches from train_batches(epoch)");
  StepRecord out;
  const auto begin = std::chrono::steady_clock::now();
  ranks_->on_leader([&](RankGroup& group) {
    group.set_step(step_ + 1);
    group.run(kTrainProgram,
              [&](BatchInputs& inputs) { samples_->fill(batch.first, batch.count, inputs); });
    const auto number = [&](const char* name) {
      return group.engine().scalar(kTrainProgram, name);
    };
    out.loss = number("loss"), out.lr = number("lr"), out.grad_norm = number("grad_norm");
    out.ok = number("ok") != 0;
  });
  out.step = ++step_;
  out.place = place_in_epoch(batch.first, batch.count, samples_->size());
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

EvalPrediction OwnLoop::gather() {
  require(validates(config(), setup_->task()),
          "no data is held out for predictions; give compose() a dataset to validate on");
  const std::unique_ptr<Samples> held_out =
      setup_->task().valid_samples(*prepared_->data, valid_choices(config()));
  const std::unique_ptr<Judge> judge = setup_->task().judge(*prepared_->data);
  const std::int64_t batch = setup_->evaluation_batch();
  Validation measured(setup_->task().means, judge.get());
  for (std::int64_t first = 0; first < held_out->size(); first += batch) {
    ranks_->on_leader([&](RankGroup& group) {
      group.run(kEvaluateProgram,
                [&](BatchInputs& inputs) { held_out->fill(first, batch, inputs); });
      measured.add(group.engine(), first, std::min(batch, held_out->size() - first));
    });
  }
  judge->scores();
  EvalPrediction out = std::move(gathered_);
  out.loss = measured.loss();
  return out;
}

void OwnLoop::set_lr(double lr) {
  require(is_rate(lr), "lr is ", lr, "; give a rate of at least 0 and at most 1e30");
  ranks_->on_leader([&](RankGroup& group) { group.set_rate(lr); });
}

void OwnLoop::save_pretrained(const std::string& folder) {
  ranks_->on_leader([&](RankGroup& group) {
    const std::vector<CheckpointTensor> states = group.states();
    SavePretrained how{.config = prepared_->hub_config,
                       .image_processor = config().image_processor,
                       .overwrite = true};
    if (const Tokenizer* const tokenizer = prepared_->data->vocabulary.made_elsewhere())
      how.tokenizer = tokenizer->files();
    tessera::save_pretrained(folder, config().model, parameters_among(states), how);
    group.forget_states();
  });
}

}  // namespace tessera
