#include <filesystem>
#include <memory>
#include <system_error>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/config/fields.h"
#include "tessera/config/output_folder.h"
#include "tessera/rapidformer/asked_run.h"
#include "tessera/rapidformer/claimed_folder.h"
#include "tessera/train/output_check.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// Where runs go for which no folder was given.
constexpr const char* kRunsFolder = "rapidformer-runs";

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

/// The first folder run-N that is not there yet, also when several runs start at once.
std::shared_ptr<ClaimedFolder> free_folder() {
  for (int number = 1;; ++number) {
    const fs::path path = fs::path(kRunsFolder) / text("run-", number);
    if (auto out = ClaimedFolder::take(path.string())) return out;
  }
}

/// Those of a run in `folder`, or those in it, however they are called.
std::vector<std::string> checkpoints_in(const std::string& folder) {
  std::vector<std::string> out = list_checkpoints(folder);
  return out.empty() ? list_checkpoints(in_folder(folder, kCheckpointsFolder)) : out;
}

/// A run of `tessera train` that goes on here keeps the names of its checkpoints.
void take_names(AskedRun& run) {
  if (!run.flags.tells("output") || run.asks("checkpoint-names")) return;
  const std::string folder = run.so_far().output;
  const bool steps = !list_checkpoints(in_folder(folder, kCheckpointsFolder)).empty();
  run.flags.set("checkpoint-names", {steps ? "step" : "iter"}, "--checkpoint-names");
}

/// --save, or else --output, or what the file says; empty: nothing does.
std::string given_output(const AskedRun& run) {
  const std::string* const save = run.flags.find("save");
  return save != nullptr ? *save : run.so_far().output;
}

void take_save(AskedRun& run) {
  if (const std::string* const save = run.flags.find("save"))
    return run.flags.set("output", {*save}, "--save");
  if (run.flags.tells("output") || run.given_elsewhere) return;
  if (run.several_processes) {
    run.problems.add(
        "--save is missing; give a folder shared by all processes, for metrics, checkpoints and "
        "the trained model");
    return;
  }
  if (run.flags.help()) return;
  const auto claimed = free_folder();
  run.notices.push_back(
      text("no --save: metrics, checkpoints and the trained model go to ", claimed->path()));
  run.flags.set("output", {claimed->path()}, "--save");
  run.claim = claimed;
}

/// The checkpoint of that iteration in `folder`; empty: there is none, which is a problem then.
std::string checkpoint_at(AskedRun& run, const std::string& folder, std::int64_t step) {
  std::string names;
  for (const std::string& path : checkpoints_in(folder)) {
    const auto name = parse_step_name(fs::path(path).filename().string());
    if (name->step == step) return path;
    names += text(names.empty() ? "" : ", ", name->step);
  }
  run.problems.add(text("--ckpt-step ", step, ": --load ", folder,
                        " has no checkpoint of that iteration; ",
                        names.empty() ? "it has none" : text("it has ", names)));
  return "";
}

/// Flags that say more of --load, which is not given.
void check_without_load(AskedRun& run) {
  if (run.flags.on("finetune"))
    run.problems.add(
        "--finetune needs --load; give --load FOLDER, or only --pretrained-model-name-or-path "
        "NAME");
  if (run.flags.find("ckpt-step") != nullptr)
    run.problems.add("--ckpt-step is an iteration of --load; give --load too");
  const std::string* const save = run.flags.find("save");
  if (save != nullptr && run.so_far().resume == "none" && !traces_of_run(*save).empty() &&
      !only_started(*save))
    run.problems.add(text("--save ", *save, " holds another run (", join(traces_of_run(*save)),
                          "); resume it with --load ", *save, ", or give a new folder"));
}

/// Goes on from a checkpoint of `load`, in that folder where no other is told.
void take_resume(AskedRun& run, const std::string& load) {
  const std::string output = given_output(run);
  const bool in_place = output.empty() || same_folder(load, output);
  if (const std::optional<std::int64_t> step = run.flags.count("ckpt-step")) {
    const std::string path = checkpoint_at(run, load, *step);
    if (!path.empty()) run.flags.set("resume", {path}, "--ckpt-step");
  } else {
    if (in_place && run.flags.on("exit-on-missing-checkpoint") && checkpoints_in(load).empty())
      run.problems.add(text("--load ", load,
                            " has no checkpoint, but --exit-on-missing-checkpoint requires one"));
    run.flags.set("resume", {in_place ? "auto" : load}, "--load");
  }
  if (output.empty()) run.flags.set("output", {load}, "--load");
}

void take_load(AskedRun& run) {
  const std::string* const load = run.flags.find("load");
  if (load == nullptr) return check_without_load(run);
  if (PretrainedModel::is_at(*load)) {
    run.problems.add(text("--load ", *load,
                          " is a model of transformers, which has no iteration to resume from; "
                          "give it as --pretrained-model-name-or-path ",
                          *load));
    return;
  }
  if (!run.flags.on("finetune")) return take_resume(run, *load);
  if (run.flags.find("pretrained-model-name-or-path") != nullptr && !run.pretraining)
    run.problems.add(text(run.flags.written("load"), " with --finetune and ",
                          run.flags.written("pretrained-model-name-or-path"),
                          " disagree: both say whose weights the run begins with; give one"));
  run.flags.set("init-from", {*load}, "--load");
}

}  // namespace

void take_folder_flags(AskedRun& run) {
  take_load(run);
  take_save(run);
  take_names(run);
}

std::string hub_folder(const RunConfig& config) { return in_folder(config.output, "hf"); }

void check_hub_folder(const RunConfig& config, const AskedRun& run) {
  const std::string hub = hub_folder(config);
  std::error_code ignored;
  if (config.output.empty() || !fs::exists(hub, ignored)) return;
  const std::string begins_with = run.pretrained ? run.pretrained->path() : config.init_from;
  if (!begins_with.empty() && same_folder(hub, begins_with))
    return run.problems.add(text("the run begins with '", begins_with,
                                 "', which its trained model would replace; give another --save"));
  // A run that goes on replaces its own; beside checkpoints no other one begins.
  if (checkpoints_in(config.output).empty())
    run.problems.add(text("'", hub,
                          "' is there already, and no run left it, which the trained "
                          "model would replace; give another --save, or move it elsewhere"));
}

}  // namespace tessera
