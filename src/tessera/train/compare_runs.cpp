#include "tessera/train/compare_runs.h"

#include <filesystem>
#include <map>

#include "tessera/base/text.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/config/output_folder.h"
#include "tessera/train/programs.h"
#include "tessera/train/task_start.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// "layers is 4 there and 6 here"
std::string difference(std::string_view name, std::string_view there, std::string_view here) {
  return text(name, " is ", there, " there and ", here, " here");
}

/// What a checkpoint records of a run, and what a run has here.
class Comparison {
 public:
  Comparison(const RecordedRun& there, const RunConfig& here)
      : config_(here),
        there_(there.fields),
        here_(record_of(here)),
        derived_there_(derived(there.config)),
        derived_here_(derived(here)) {}

  /// "layers is 4 there and 6 here"; empty: the same, also where one of the two says what the other
  /// leaves to be derived, or not recorded, and what nothing reads.
  std::string operator()(const Field& field) const {
    if (!is_read(field, config_)) return "";
    const std::string name(field.name);
    const auto old = there_.find(name);
    if (old == there_.end() || old->second == here_.at(name)) return "";
    const std::string &there = derived_there_.at(name), &here = derived_here_.at(name);
    return there == here ? "" : difference(name, there, here);
  }

 private:
  static std::map<std::string, std::string> derived(RunConfig config) {
    config.model = with_derived(config.model);
    config.reduce_dtype = to_text(sums_of(config));
    return record_of(config);
  }

  const RunConfig& config_;
  const std::map<std::string, std::string>& there_;
  std::map<std::string, std::string> here_, derived_there_, derived_here_;
};

/// What is held out decides which samples train: a text of its own, or a part of the data.
void compare_valid_data(const std::string& there, const std::string& here,
                        std::vector<std::string>& confirm, std::vector<std::string>& notice) {
  if (there == here) return;
  const auto named = [](const std::string& paths) { return paths.empty() ? "none" : paths; };
  (there.empty() == here.empty() ? notice : confirm)
      .push_back(difference("valid-data", named(there), named(here)));
}

/// Is not known before the data is.
bool follows_from_epochs(const Field& field, const RunConfig& config) {
  return field.name == "lr-decay-steps" && config.epochs > 0;
}

/// A model that sees fewer tokens than its table has positions is no other one.
void take_lengths(ModelConfig& there, const ModelConfig& here) {
  if (there.most_positions() == here.most_positions()) {
    there.context = here.context;
    there.positions = here.positions;
  }
  if (there.most_source_positions() == here.most_source_positions()) {
    there.source_context = here.source_context;
    there.source_positions = here.source_positions;
  }
}

/// ", as with --config RUN/config.toml --resume auto", where the checkpoint's run left such a file.
std::string how_to_give_the_same(const RunConfig& config, const std::string& path) {
  const std::string folder = fs::path(path).parent_path().parent_path().string();
  std::error_code ignored;
  if (!fs::exists(in_folder(folder, kConfigFile), ignored)) return "";
  return text(", as with ", flags_to_go_on(folder, config.resume));
}

}  // namespace

void compare_model(const RunConfig& config, const RecordedRun& init, const std::string& path,
                   Problems& problems) {
  RecordedRun there = init;
  there.config.model = for_task_of(init.config.model, config.model);
  take_lengths(there.config.model, config.model);
  const std::map<std::string, std::string> adapted = record_of(there.config);
  for (auto& [name, value] : there.fields) {
    if (find_field(name).field != nullptr && find_field(name).field->group == FieldGroup::Model)
      value = adapted.at(name);
  }
  const Comparison compared(there, config);
  std::vector<std::string> model;
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Optimizer || field.on_resume != OnResume::Model) continue;
    // A model without adapters gets some.
    if (field.group == FieldGroup::Adapters && init.config.model.lora.rank == 0) continue;
    if (const std::string line = compared(field); !line.empty()) model.push_back(line);
  }
  if (!model.empty())
    problems.add(text("init-from '", path, "' is of another model: ", join(model, "; "),
                      "; give the same, or start without --init-from"),
                 Fault::Checkpoint);
}

void compare_run(const RunConfig& config, const RecordedRun& from, const std::string& path,
                 const DataDigests& data, std::vector<std::string>& notices, Problems& problems) {
  const std::map<std::string, std::string>& there = from.fields;
  const std::map<std::string, std::string> here = record_of(config);
  const Comparison compared(from, config);
  std::vector<std::string> model, confirm, notice, rounding;
  for (const Field& field : fields()) {
    const std::string line = compared(field);
    if (line.empty() || follows_from_epochs(field, config)) continue;
    if (field.on_resume == OnResume::Model) model.push_back(line);
    if (field.on_resume == OnResume::Confirm) confirm.push_back(line);
    if (field.on_resume == OnResume::Notice) notice.push_back(line);
    if (field.on_resume == OnResume::AtStart)
      notices.push_back(
          text("resuming: ", line,
               "; it applies to the start of a run: a later value in the checkpoint is kept"));
    const std::string name(field.name);
    const bool known = there.at(name) != "auto" && here.at(name) != "auto";
    if (field.on_resume == OnResume::Rounding && known) rounding.push_back(line);
  }
  const auto old_valid = there.find("valid-data");
  compare_valid_data(old_valid == there.end() ? "" : old_valid->second, here.at("valid-data"),
                     confirm, notice);
  if (!data.text.empty() && from.data != data.text)
    confirm.push_back(difference("the data's digest", from.data, data.text));
  // Checkpoints of earlier versions have none.
  if (!from.held_out.empty() && !data.held_out.empty() && from.held_out != data.held_out)
    confirm.push_back(difference("the digest of valid-data", from.held_out, data.held_out));
  if (from.data == data.text && !from.ids.empty() && !data.ids.empty() && from.ids != data.ids)
    confirm.push_back(
        text(difference("the digest of ids of the same text", from.ids, data.ids),
             " (this version of Tessera reads the tokenizer or the rows differently)"));
  const std::string same = how_to_give_the_same(config, path);
  if (!model.empty()) {
    problems.add(text("checkpoint '", path, "' is of another model: ", join(model, "; "),
                      "; give the same", same, ", or start a new run without --resume"),
                 Fault::Checkpoint);
  }
  if (!confirm.empty() && !config.allow_changes) {
    problems.add(text("checkpoint '", path, "' has seen other samples: ", join(confirm, "; "),
                      "; give the same", same, ", or add --allow-changes"));
  } else {
    notice.insert(notice.end(), confirm.begin(), confirm.end());
  }
  for (const std::string& line : notice) notices.push_back(text("resuming with a change: ", line));
  for (const std::string& line : rounding)
    notices.push_back(text("resuming with other kernels: ", line,
                           "; sums are rounded differently from here on, so the run will not match "
                           "an uninterrupted one bit by bit"));
}

void compare_epochs(const RunConfig& config, const RecordedRun& from,
                    std::vector<std::string>& notices) {
  const Comparison compared(from, config);
  for (const Field& field : fields()) {
    const std::string line = follows_from_epochs(field, config) ? compared(field) : "";
    if (!line.empty()) notices.push_back(text("resuming with a change: ", line));
  }
}

}  // namespace tessera
