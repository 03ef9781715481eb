#include "tessera/train/task_start.h"

#include <algorithm>

#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/data/dataset.h"
#include "tessera/models/family.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/sources/picture_data.h"
#include "tessera/sources/row_data.h"

namespace tessera {

namespace {

/// "3 labels ('a', 'b', 'c')"
std::string labels_text(std::int64_t classes, const std::vector<std::string>& names) {
  const std::string count = counted(classes, "label");
  return names.empty() ? count : text(count, " (", label_names_text(names), ")");
}

}  // namespace

std::vector<std::string> parameter_names(const PretrainedModel& model) {
  std::vector<std::string> out;
  for (const auto& [name, shape] : model.parameters()) out.push_back(name);
  return out;
}
std::vector<std::string> parameter_names(const Checkpoint& checkpoint) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : checkpoint.tensors()) out.push_back(entry.name);
  return out;
}

void leave_open_to_rows(RunConfig& config, bool start) {
  ModelConfig& model = config.model;
  const bool names_classes = is_of_rows(model) || reads_picture_files(config);
  if (names_classes && config.defaulted.contains("classes")) model.classes = 0;
  if (!is_of_rows(model)) return;
  if (config.defaulted.contains("texts")) model.texts = 0;
  if (!config.defaulted.contains("context")) return;
  if (start && model.positions == 0 && reads_field(model, "positions"))
    model.positions = model.context;
  model.context = 0;
}

void take_sizes_of_data(RunConfig& config, const ModelConfig& from) {
  if (reads_field(config.model, "classes") && config.model.classes == 0)
    config.model.classes = from.classes;
  if (is_of_rows(config.model) && config.model.context == 0) config.model.context = from.context;
}

std::string head_to_begin_anew(const RunConfig& config, const Dataset& data,
                               const StartModel& start, std::vector<std::string>& notices) {
  const FamilyTask& task = family_task(config.model);
  const std::string prefix = text(task.head, ".");
  const bool has_head =
      !task.head.empty() && std::ranges::any_of(start.parameters, [&](const std::string& name) {
        return name.starts_with(prefix);
      });
  if (!has_head) return "";
  if (!has_task(start.model, task.name)) {
    notices.push_back(text("the classifier is initialized at random: '", start.path,
                           "' was trained for another task"));
    return std::string(task.head);
  }
  const std::vector<std::string>& here = data.label_names;
  const bool same_names = start.labels.empty() || here.empty() || start.labels == here;
  if (start.model.classes == config.model.classes && same_names) return "";
  notices.push_back(text("the classifier is initialized at random: '", start.path, "' classifies ",
                         labels_text(start.model.classes, start.labels), ", but this run ",
                         labels_text(config.model.classes, here)));
  return std::string(task.head);
}

ModelConfig for_task_of(ModelConfig start, const ModelConfig& here) {
  const FamilyTask& task = family_task(here);
  if (!has_task(start, task.name)) {
    start.masked_positions = here.masked_positions;
    start.generator_width = here.generator_width;
  }
  if (!task.head.empty()) start.classes = here.classes;
  if (task.rows != RowsKind::None) {
    const bool same_table = start.most_positions() == here.most_positions();
    start.positions = same_table ? here.positions : start.most_positions();
    start.context = here.context;
    start.texts = here.texts;
  }
  start.preference = here.preference;
  start.task = here.task;
  return start;
}

}  // namespace tessera
