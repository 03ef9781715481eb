#include "tessera/train/output_check.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_files.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/train/best_checkpoint.h"
#include "tessera/train/validation.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void check_replaced(const RunConfig& config, bool holds_run, Problems& problems) {
  std::error_code ignored;
  if (config.resume != "none")
    problems.add(
        text("--overwrite starts again, but resume ", config.resume, " continues; give one"));
  if (!holds_run && exists(config.output) && !fs::is_empty(config.output, ignored))
    problems.add(text("--overwrite replaces a run, and output '", config.output,
                      "' has other files but no run; leave it out, or give another folder"));
  if (!config.init_from.empty() && lies_within(config.init_from, config.output))
    problems.add(text("init-from '", config.init_from, "' lies in output '", config.output,
                      "', whose run --overwrite removes; give another output"));
}

}  // namespace

bool only_started(const std::string& output) {
  const std::vector<std::string> traces = traces_of_run(output);
  return !traces.empty() && checkpoints_of_run(output).empty() &&
         std::ranges::find(traces, kSummaryFile) == traces.end();
}

void check_output(const RunConfig& config, OtherRun other, Problems& problems) {
  if (config.output.empty()) {
    problems.add("output is missing; give a folder for the run, like --output runs/first");
    return;
  }
  std::error_code ignored;
  if (exists(config.output) && !fs::is_directory(config.output, ignored)) {
    problems.add(text("output '", config.output, "' is a file; give a folder"), Fault::Resource);
    return;
  }
  const std::vector<std::string> traces = traces_of_run(config.output);
  if (other == OtherRun::Replace) check_replaced(config, !traces.empty(), problems);
  if (traces.empty() && exists(in_folder(config.output, kConfigFile)))
    problems.add(
        text("output '", config.output, "' holds a ", kConfigFile,
             " that no run wrote and this run would replace; move it, or give another output"));
  if (traces.empty() && PretrainedModel::is_at(config.output))
    problems.add(text("output '", config.output, "' holds a model of Hugging Face (config.json), ",
                      "so the folder would hold two models; give another output"));
  const bool nothing_lost = config.resume == "none" && only_started(config.output);
  const bool in_place = config.resume == "auto" ||
                        (config.resume != "none" && lies_within(config.resume, config.output));
  if (!traces.empty() && !nothing_lost && !in_place && other == OtherRun::Refuse) {
    problems.add(
        text("output '", config.output, "' holds another run (", join(traces),
             "); resume it with --resume auto, replace it with --overwrite, or give a new folder"));
  }
}

std::string notice_of_replaced_run(const RunConfig& config, OtherRun other) {
  if (config.resume != "none") return "";
  if (only_started(config.output))
    return text("output '", config.output, "' holds ", kMetricsFile,
                " of a run that ended before its first checkpoint; it is replaced");
  const std::vector<std::string> traces = traces_of_run(config.output);
  if (other == OtherRun::Refuse || traces.empty()) return "";
  return text("output '", config.output, "' holds another run (", join(traces),
              "); it is replaced when training begins");
}

std::vector<std::string> remove_run(const std::string& output, const FileCalls& calls) {
  std::vector<std::string> problems;
  const auto remove_file = [&](const std::string& path) {
    if (calls.remove(path.c_str()) != 0 && errno != ENOENT)
      problems.push_back(text("could not remove '", path, "': ", std::strerror(errno)));
  };
  const std::string folder = in_folder(output, kCheckpointsFolder);
  for (std::int64_t epoch = 1; exists(in_folder(output, predictions_file(epoch))); ++epoch)
    remove_file(in_folder(output, predictions_file(epoch)));
  for (const char* name : {kTestPredictionsFile, kTrackerFile, kSummaryFile})
    remove_file(in_folder(output, name));
  remove_file(in_folder(folder, kBestLink));
  for (const std::string& checkpoint : checkpoints_of_run(output)) {
    if (std::string problem = remove_folder(calls, checkpoint); !problem.empty())
      problems.push_back(std::move(problem));
  }
  remove_file(in_folder(output, kMetricsFile));
  return problems;
}

void refuse_other_names(const RunConfig& config) {
  const auto names = static_cast<std::size_t>(checkpoint_names(config) == CheckpointNames::Step);
  const std::vector<std::string> others = checkpoints_of_run(config.output);
  if (others.empty()) return;
  fail(Fault::Checkpoint, "resume auto finds no checkpoint in '", checkpoints_folder(config),
       "', their folder with ", "checkpoint-names ", config.checkpoint_names, ", but '",
       others.back(), "' exists; resume ", "it with --checkpoint-names ", kCheckpointNames[names],
       ", or give another output");
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
