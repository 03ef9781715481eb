#include "tessera/train/output_check.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/checkpoint_folder.h"
#include "tessera/train/output_folder.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// True where a run has written losses, and came neither to a checkpoint nor to its end.
bool only_started(const std::string& output) {
  const std::vector<std::string> traces = traces_of_run(output);
  return !traces.empty() && checkpoints_of_run(output).empty() &&
         std::ranges::find(traces, kSummaryFile) == traces.end();
}

}  // namespace

void check_output(const RunConfig& config, Problems& problems) {
  if (config.output.empty()) {
    problems.add("output is missing; give a folder for the run, like --output runs/first");
    return;
  }
  std::error_code ignored;
  if (fs::exists(config.output, ignored) && !fs::is_directory(config.output, ignored)) {
    problems.add(text("output '", config.output, "' is a file; give a folder"), Fault::Resource);
    return;
  }
  const std::vector<std::string> traces = traces_of_run(config.output);
  const auto within = [&] {  // resuming in place
    const std::string path = fs::weakly_canonical(config.resume, ignored).string() + "/";
    return starts_with(path, fs::weakly_canonical(config.output, ignored).string() + "/");
  };
  const bool nothing_lost = config.resume == "none" && only_started(config.output);
  if (!traces.empty() && !nothing_lost && config.resume != "auto" &&
      (config.resume == "none" || !within())) {
    problems.add(text("output '", config.output, "' holds another run (", join(traces),
                      "); go on with it by --resume auto, or give a new folder"));
  }
}

std::string notice_of_failed_start(const RunConfig& config) {
  if (config.resume != "none" || !only_started(config.output)) return "";
  return text("output '", config.output, "' holds ", kMetricsFile,
              " of a run that ended before its first checkpoint; it is replaced");
}

void refuse_other_names(const RunConfig& config) {
  const auto names = static_cast<std::size_t>(checkpoint_names(config) == CheckpointNames::Step);
  const std::vector<std::string> others = checkpoints_of_run(config.output);
  if (others.empty()) return;
  fail(Fault::Checkpoint, "resume auto finds no checkpoint in '", checkpoints_folder(config),
       "', where they lie with ", "checkpoint-names ", config.checkpoint_names, ", but '",
       others.back(), "' is there; go on ", "with it by --checkpoint-names ",
       kCheckpointNames[names], ", or give another output");
}

std::vector<std::string> what_output_holds(const std::string& output) {
  std::vector<std::string> out = traces_of_run(output);
  const std::string folder = checkpoints_folder(output, CheckpointNames::Step);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return out;
  for (const std::string& path : list_checkpoints(folder)) out.push_back(path);
  return out;
}

}  // namespace tessera
