#include "tessera/rapidformer/request.h"

#include <array>

#include "tessera/apps/export_model.h"
#include "tessera/apps/flags.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/models/family.h"
#include "tessera/rapidformer/asked_run.h"
#include "tessera/rapidformer/data_flags.h"
#include "tessera/rapidformer/log_lines.h"
#include "tessera/train/pretrained_start.h"

namespace tessera {

namespace {

constexpr const char* kPretraining = "pretraining";

/// The field `task` of --task; whether it is pretraining.
void take_task(AskedRun& run) {
  const std::string* const task = run.flags.find("task");
  if (task == nullptr) {
    if (run.whose == FlagsOf::Command && !run.given_elsewhere)
      run.problems.add(
          "--task is missing; give pretraining, sequence_classification, causal_lm or "
          "another one that --help lists");
    run.pretraining = run.whose != FlagsOf::Command;
    return;
  }
  run.pretraining = *task == kPretraining;
  run.flags.set("task", {*task == "casual_lm" ? "causal_lm" : *task}, "--task");
}

/// What Megatron-LM requires. A line that ends too soon loses the flags below it.
void require_flags(AskedRun& run) {
  if (run.given_elsewhere) return;
  struct Wanted {
    std::string_view name;
    std::vector<std::string_view> also;
    bool if_so = true;
  };
  const bool command = run.whose == FlagsOf::Command;
  const bool sizes = command && run.pretraining &&
                     run.flags.find("pretrained-model-name-or-path") == nullptr &&
                     !run.flags.tells("init-from") && !run.has_loaded_model();
  const std::vector<Wanted> all = {
      {"data-path", {"data-dir", "dataset-path", "data"}, command},
      {"num-layers", {}, sizes},
      {"hidden-size", {}, sizes},
      {"num-attention-heads", {}, sizes},
      {"seq-length", {"encoder-seq-length"}, sizes},
      {"micro-batch-size", {}, command},
      {"train-iters", {"train-samples", "epochs"}, run.pretraining},
      {"epochs", {"train-iters", "train-samples"}, !run.pretraining},
      {"lr", {}, command},
  };
  std::vector<std::string> missing;
  for (const Wanted& wanted : all) {
    bool given = !wanted.if_so || run.flags.find(wanted.name) != nullptr;
    for (const std::string_view name : wanted.also)
      given = given || run.flags.find(name) != nullptr;
    if (given) continue;
    missing.push_back(text("--", wanted.name));
    if (wanted.name == "data-path") run.problems.refuse("data");
  }
  if (missing.empty()) return;
  run.problems.add(text(
      join(missing), missing.size() == 1 ? " is" : " are", " missing",
      run.flags.last().empty()
          ? ""
          : text("; the last flag that arrived is `", run.flags.last(),
                 "`: if the script continues below it, that line lacks a backslash at its end")));
}

/// What a field is where neither a flag nor a file nor a preset says so: Megatron-LM's defaults,
/// where others would make it another run.
struct OwnDefault {
  std::string_view field, value;
};
constexpr OwnDefault kAlways[] = {
    {"seed", "1234"}, {"lr-decay-style", "linear"}, {"log-every", "100"}};
constexpr OwnDefault kInEpochs[] = {{"keep-best", "true"}};
constexpr OwnDefault kInIterations[] = {{"eval-every", "1000"}, {"eval-iters", "100"}};
constexpr OwnDefault kOfNewModels[] = {{"dropout", "0.1"}, {"attention-dropout", "0.1"}};

void take_defaults(RunConfig& config, const AskedRun& run) {
  const auto take = [&](std::span<const OwnDefault> all) {
    for (const OwnDefault& own : all) {
      if (config.defaulted.contains(own.field))
        set_text(*find_field(own.field).field, config, own.value, own.field);
    }
  };
  if (run.given_elsewhere) return;
  take(kAlways);
  if (config.epochs == 0) take(kInIterations);
  if (config.epochs > 0 && (config.eval_at_end || config.eval_every > 0)) take(kInEpochs);
  // --dropout of tessera train is both rates.
  if (!run.pretrained && reads_field(*config.model.family, "dropout") &&
      !run.flags.typed("dropout"))
    take(kOfNewModels);
}

/// --eval-iters 0 is no validation, and after each epoch there is one of all that is held out.
void hold_nothing_out(RunConfig& config, const AskedRun& run) {
  if (run.flags.find("eval-iters") == nullptr || config.eval_iters != 0 || config.epochs == 0)
    return;
  config.held_out = 0;
  config.valid_data.clear();
}

/// In pretraining the folder gives the architecture: what flags say of it holds, and the weights
/// are new.
void take_architecture(RunConfig& config, const AskedRun& run, std::vector<std::string>& notices) {
  if (!run.pretrained || !run.pretraining || run.whose != FlagsOf::Command) return;
  take_model(config, *run.pretrained);
  if (!run.pretrained->parameters().empty())
    notices.push_back(
        text("pretraining starts from new weights, with the architecture and tokenizer of ",
             run.pretrained->path(), "; to start from its weights, give --init-from ",
             run.pretrained->path()));
}

/// What transformers loads.
void write_hub_folder(const RunConfig& config, Console& console) {
  const std::string folder = hub_folder(config);
  try {
    const ExportedModel written = export_model(config.output, folder, {.overwrite = true},
                                               AdapterExport::Apart, config.families);
    console.out << " the trained model is in " << folder << ", as transformers loads it\n";
    if (const std::string notice = notice_of_left_out(written); !notice.empty())
      console.out << "notice: " << notice << "\n";
  } catch (const Error& error) {
    if (error.fault() != Fault::Usage) throw;
    console.out << "notice: " << folder << " is not written: " << error.what() << "\n";
  }
}

void end_run(const TrainResult& result, const RunConfig& config, Console& console) {
  const Summary& summary = result.summary;
  write_hub_folder(config, console);
  const char* const how = result.ending == Ending::Finished   ? "done"
                          : result.ending == Ending::Interval ? "stopped after --exit-interval"
                                                              : "stopped on request";
  console.out << " " << how << ": iteration " << summary.steps << " of " << config.steps << "; all "
              << "files are in " << config.output << "\n";
  if (result.ending != Ending::Finished)
    console.out << " resume with the same flags and --load " << config.output << "\n";
}

}  // namespace

AskedTraining read_rapidformer_flags(const Arguments& arguments, FlagsOf whose,
                                     const EnvironmentVariables& environment,
                                     const OwnFamilies& families) {
  refuse_comments(arguments);
  AskedTraining out;
  Problems& problems = out.problems;
  AskedRun run{GivenFlags(arguments, families, problems, out.notices), problems, out.notices, whose,
               families};
  out.help = run.flags.help();
  run.given_elsewhere = run.flags.find("config") != nullptr || run.flags.find("preset") != nullptr;
  take_task(run);
  require_flags(run);
  for (const auto& part : std::array<std::function<void()>, 5>{
           [&] { take_model_flags(run); }, [&] { take_mesh_flags(run, environment); },
           [&] { take_schedule_flags(run); },
           [&] {
             if (whose != FlagsOf::OwnData)
               take_data(run.flags, run.pretraining, whose == FlagsOf::Command, problems,
                         out.notices);
           },
           [&] { take_folder_flags(run); }})
    problems.gather(part);
  out.devices_given = run.devices_given;
  out.claim = run.claim;
  out.config = configure(run.flags.settings(), problems, out.notices, families);
  take_defaults(out.config, run);
  hold_nothing_out(out.config, run);
  problems.gather([&] { take_architecture(out.config, run, out.notices); });
  check_hub_folder(out.config, run);
  show_as_rapidformer(out);
  return out;
}

void show_as_rapidformer(AskedTraining& asked) {
  asked.display = [](const RunConfig& config, Console& console) {
    return std::make_unique<LogLines>(console, config);
  };
  asked.at_end = end_run;
}

}  // namespace tessera
