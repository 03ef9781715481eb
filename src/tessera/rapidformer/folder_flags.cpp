#include <filesystem>
#include <system_error>

#include "tessera/base/text.h"
#include "tessera/rapidformer/asked_run.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/checkpoint_folder.h"
#include "tessera/train/fields.h"
#include "tessera/train/output_folder.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// Where runs go for which no folder was given.
constexpr const char* kRunsFolder = "rapidformer-runs";

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

/// The first folder run-N that nothing lies in yet.
std::string free_folder() {
  std::error_code ignored;
  for (int number = 1;; ++number) {
    std::string out = (fs::path(kRunsFolder) / text("run-", number)).string();
    if (!fs::exists(out, ignored)) return out;
  }
}

/// A run of `tessera train` that goes on here keeps the names of its checkpoints.
void take_names(AskedRun& run, const std::string& folder) {
  if (run.flags.tells("checkpoint-names")) return;
  const bool steps = !list_checkpoints(in_folder(folder, kCheckpointsFolder)).empty();
  run.flags.set("checkpoint-names", {steps ? "step" : "iter"}, "--checkpoint-names");
}

void take_save(AskedRun& run) {
  if (run.flags.tells("output")) return;
  std::string folder;
  if (const std::string* const save = run.flags.find("save")) {
    folder = *save;
  } else if (run.told_elsewhere) {
    return;
  } else if (run.several_processes) {
    run.problems.add(
        "--save is missing: give a folder that all processes see, which has the "
        "metrics, the checkpoints and the trained model");
    return;
  } else {
    folder = free_folder();
    run.notices.push_back(
        text("no --save: metrics, checkpoints and the trained model go to ", folder));
  }
  run.flags.set("output", {folder}, "--save");
  take_names(run, folder);
}

/// The checkpoint in `folder` of that iteration.
void resume_at(AskedRun& run, const std::string& folder, std::int64_t step) {
  std::string names;
  const std::vector<std::string> all = list_checkpoints(folder);
  for (const std::string& path : all) {
    const auto name = parse_step_name(fs::path(path).filename().string());
    if (name->step == step) return run.flags.set("resume", {path}, "--ckpt-step");
    names += text(names.empty() ? "" : ", ", name->step);
  }
  run.problems.add(text("--ckpt-step ", step, ": --load ", folder,
                        " has no checkpoint of that iteration; ",
                        names.empty() ? "it has none" : text("it has ", names)));
}

void take_load(AskedRun& run) {
  const std::string* const load = run.flags.find("load");
  const std::string* const save = run.flags.find("save");
  const bool weights = run.flags.on("finetune");
  if (load == nullptr) {
    if (weights)
      run.problems.add(
          "--finetune begins with the weights of --load, which is not given; give "
          "--load FOLDER, or --pretrained-model-name-or-path NAME alone");
    if (run.flags.find("ckpt-step") != nullptr)
      run.problems.add("--ckpt-step is an iteration of --load; give that too");
    if (save != nullptr && !run.flags.tells("resume") && !traces_of_run(*save).empty())
      run.problems.add(text("--save ", *save, " holds another run (", join(traces_of_run(*save)),
                            "); go on with it by --load ", *save, ", or give a new folder"));
    return;
  }
  if (PretrainedModel::is_at(*load)) {
    run.problems.add(text("--load ", *load,
                          " is a model of transformers, which has no iteration to "
                          "go on from; give it as --pretrained-model-name-or-path ",
                          *load));
    return;
  }
  if (weights) {
    if (run.flags.find("pretrained-model-name-or-path") != nullptr && !run.pretraining)
      run.problems.add(text(run.flags.written("load"), " with --finetune and ",
                            run.flags.written("pretrained-model-name-or-path"),
                            " disagree: both say whose weights the run begins with; give one"));
    return run.flags.set("init-from", {*load}, "--load");
  }
  if (const std::optional<std::int64_t> step = run.flags.count("ckpt-step"))
    return resume_at(run, *load, *step);
  const bool in_place = save == nullptr || same_folder(*load, *save);
  if (in_place && run.flags.on("exit-on-missing-checkpoint") && list_checkpoints(*load).empty())
    run.problems.add(text("--load ", *load,
                          " has no checkpoint, and --exit-on-missing-checkpoint "
                          "wants one"));
  run.flags.set("resume", {in_place ? "auto" : *load}, "--load");
  if (save == nullptr) {
    run.flags.set("output", {*load}, "--load");
    take_names(run, *load);
  }
}

}  // namespace

void take_folder_flags(AskedRun& run) {
  take_load(run);
  take_save(run);
}

}  // namespace tessera
