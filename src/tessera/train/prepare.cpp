#include "tessera/train/prepare.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/config/fields.h"
#include "tessera/config/own_file.h"
#include "tessera/config/recorded.h"
#include "tessera/models/family.h"
#include "tessera/train/compare_runs.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/pretrained_start.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_data.h"
#include "tessera/train/task_start.h"
#include "tessera/train/token_data.h"

namespace tessera {

namespace {

std::vector<std::string> parameters_of(const PretrainedModel& model) {
  std::vector<std::string> out;
  for (const auto& [name, shape] : model.parameters()) out.push_back(name);
  return out;
}
std::vector<std::string> parameters_of(const Checkpoint& checkpoint) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : checkpoint.tensors()) out.push_back(entry.name);
  return out;
}

/// Numbers of the loss scale, of a run that has none.
void add_notice_of_unread_scale(const RunConfig& config, std::vector<std::string>& notices) {
  if (config.fp16) return;
  const LossScaleConfig &scale = config.optimizer.loss_scale, usual;
  std::vector<std::string> unread;
  if (scale.initial != usual.initial) unread.emplace_back("initial-loss-scale");
  if (scale.least != usual.least) unread.emplace_back("min-loss-scale");
  if (scale.window != usual.window) unread.emplace_back("loss-scale-window");
  if (scale.hysteresis != usual.hysteresis) unread.emplace_back("hysteresis");
  if (!unread.empty())
    notices.push_back(
        text(join(unread), unread.size() == 1 ? " does" : " do", " nothing without fp16"));
}

}  // namespace

std::optional<PreparedRun> prepare_run(RunConfig config, Problems& problems, OtherRun other) {
  std::vector<std::string> notices, held;
  problems.gather([&] { held = what_output_holds(config.output); });
  std::optional<Source> from = find_source(config, problems, notices), init;
  std::optional<PretrainedModel> pretrained;
  if (!from && !config.init_from.empty())
    problems.gather_first([&] {
      if (is_hub_folder(config)) {
        pretrained.emplace(open_pretrained(config, OpenPretrained::Weights::Read));
        take_model(config, *pretrained);
      } else {
        init.emplace(open_init(config));
      }
    });
  const std::optional<Source>& base = from ? from : init;
  if (base) problems.gather([&] { take_model(config, base->run); });
  if (from) take_f32_products(config, from->run.config);
  if (!from) leave_open_to_rows(config, init.has_value());
  RunConfig told = config;
  complete(config);
  problems.gather([&] { find_columns(config); });
  find_problems(config, problems);
  check_output(config, other, problems);
  if (const std::string replaced = notice_of_replaced_run(config, other); !replaced.empty())
    notices.push_back(replaced);
  check_replaces_own("profile", config.profile, OwnFile::Profile, problems);
  check_offload_folder(config, problems);
  if (base) check_tokenizer(config, *base, problems);
  // Other data is to be told as such, not as another model, nor as characters that are not known.
  if (base && config.model.vocabulary == 0)
    config.model.vocabulary = base->run.config.model.vocabulary;
  if (from) take_sizes_of_data(config, from->run.config.model);
  Problems of_data;
  KnownLabels labels{base ? base->run.labels : std::vector<std::string>(), from.has_value()};
  if (pretrained) labels.names = pretrained->labels();
  std::optional<Dataset> data = load_data(config, base, labels, of_data);
  if (data && data->vocabulary.made_elsewhere() != nullptr) {
    for (const std::string& notice : data->vocabulary.made_elsewhere()->notices())
      notices.push_back(notice);
  }
  problems.gather([&] {
    if (!data || !data->token_files) return;
    config.eod_token = eod_token_of(config, data->vocabulary);
    if (!data->token_files->has(DataPart::Valid)) config.held_out = 0;
  });
  if (const std::string unread = notice_of_other_kinds(config); !unread.empty())
    notices.push_back(unread);
  const std::string digest = data ? data->digest : from ? digest_of(config, *from) : "";
  const Isa isa = config.choices.value_or(machine_choices()).isa;
  const std::optional<Precision> precision = precision_of(config);
  if (precision && !multiplies_16_bit(precision->compute, isa))
    notices.push_back(text("kernels of instruction set ", to_text(isa), " multiply no ",
                           precision->compute,
                           ", but convert it to f32 and back, so products take "
                           "no less time than in f32"));
  add_notice_of_unread_scale(config, notices);
  const std::string ids = data ? ids_digest(*data) : "";
  const DataDigests digests = {digest, data ? data->held_out_digest : "", ids};
  if (from) compare_run(config, from->run, from->checkpoint.path(), digests, notices, problems);
  const bool other_data = from && !digest.empty() && digest != from->run.data;
  if (!other_data || config.allow_changes) {
    for (const Error& problem : of_data.list()) problems.add(problem, {"data"});
  }
  if (!data) return {};
  if (const std::string repeated = repeated_ranks_text(config.parallel); !repeated.empty())
    notices.push_back(repeated);
  take_special_tokens(config.model, data->vocabulary);
  complete_from_data(config, *data);
  const bool open = config.model.vocabulary == 0;
  if (open) config.model.vocabulary = vocabulary_for(config.model.family, data->vocabulary);
  if (open || is_of_rows(config.model)) problems.add(tessera::problems(config.model));
  if (config.epochs > 0 && tessera::problems(config.model).empty()) {
    problems.gather([&] {
      const Task task = task_of(config.model);
      if (data->token_files && !task.token_files) return;  // reported below
      const std::int64_t in_epoch =
          data->token_files
              ? task.token_files->samples_in_epoch(*data->token_files, sample_choices(config))
              : task.train_samples(*data, sample_choices(config))->size();
      complete_epochs(config, told, in_epoch);
      if (from) compare_epochs(config, from->run, notices);
    });
  }
  if (from && data->token_files && tessera::problems(config.model).empty())
    problems.gather([&] { compare_token_order(config, from->run.config, *data, notices); });
  PreparedRun run{.config = std::move(config),
                  .told = std::move(told),
                  .data = std::move(*data),
                  .ids = ids,
                  .notices = std::move(notices),
                  .output_held = std::move(held)};
  run.hub_config = pretrained ? pretrained->json()
                   : base     ? recorded_hub_config(base->checkpoint)
                              : "";
  if (pretrained) {
    for (const std::string& notice : pretrained->notices()) run.notices.push_back(notice);
    if (pretrained->parameters().empty())
      run.notices.push_back(text("of '", pretrained->path(), "' config.json alone is read: all ",
                                 "weights begin with random numbers"));
    compare_model(run.config, *pretrained, problems);
    check_problem_type(run.config, *pretrained, run.data, run.notices, problems);
    if (has_task(run.config.model, kSequenceClassification))
      problems.gather([&] { require_same_padding(*pretrained, run.data.vocabulary); });
    run.anew = head_to_begin_anew(
        run.config, run.data,
        {pretrained->config(), labels.names, pretrained->path(), parameters_of(*pretrained)},
        run.notices);
    if (problems.empty())
      problems.gather([&] { pretrained->check_shapes(run.config.model, run.anew); });
    run.pretrained = std::move(pretrained);
  }
  if (from) run.from.emplace(std::move(from->checkpoint));
  if (init) run.init.emplace(std::move(init->checkpoint));
  check_data(run, problems);
  if (init) {
    compare_model(run.config, init->run, run.init->path(), problems);
    run.anew = head_to_begin_anew(
        run.config, run.data,
        {init->run.config.model, labels.names, run.init->path(), parameters_of(*run.init)},
        run.notices);
  }
  if (problems.empty()) {
    problems.gather([&] { require_ids_of(run.data, run.config.model.vocabulary); });
    take_test_data(run, problems);
  }
  if (problems.empty())
    problems.gather([&] { require_room_for_tensors(checkpoint_record(run, 0, 0)); });
  if (!problems.empty()) return {};
  return run;
}

}  // namespace tessera
