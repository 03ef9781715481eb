#include "tessera/config/row_fields.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/config/fields/row.h"
#include "tessera/config/given_fields.h"
#include "tessera/data/label_kind.h"
#include "tessera/data/packing.h"
#include "tessera/models/family.h"
#include "tessera/token_files/blend.h"
#include "tessera/token_files/indexed_dataset.h"

namespace tessera {

namespace {

constexpr std::string_view kNegative = "negative-column";

/// Fields of other tasks; a column that is named twice.
void find_label_problems(const RunConfig& config, Problems& problems) {
  const bool labels = is_of_rows(config.model);
  std::vector<std::string_view> others = data_fields(rows::kLabels);
  if (labels) others = {"target-column"};
  if (is_of_groups(config.model))
    others.insert(others.end(), {"label-column", "label-separator"});
  else
    others.emplace_back(kNegative);
  for (const std::string_view name : others) {
    const auto given = config.given.find(name);
    if (given != config.given.end())
      problems.add(text(given->second, " does nothing with task ", family_task(config.model).name,
                        labels ? "; leave it out" : "; leave it out, or give task ",
                        labels              ? ""
                        : name == kNegative ? kSentenceEmbedding.name
                                            : kSequenceClassification.name),
                   {name, "task"});
  }
  if (!labels) return;
  const FamilyTask& task = family_task(config.model);
  const auto separator = config.given.find("label-separator");
  if (separator != config.given.end() && !(is_of_tables(config.model) && task.labels->several))
    problems.add(text(separator->second, " does nothing with task ", task.name,
                      ", whose rows have one label; leave it out"),
                 {"label-separator", "task"});
  if (config.text_column.empty() && !config.text_pair_column.empty())
    problems.add(text("text-pair-column is '", config.text_pair_column,
                      "', and text-column is not given; give the column of the first texts too"),
                 {"text-column", "text-pair-column"});
  const bool groups = is_of_groups(config.model);
  const std::string* const columns[] = {&config.text_column, &config.text_pair_column,
                                        groups ? &config.negative_column : &config.label_column};
  const std::string_view last = groups ? kNegative : "label-column";
  for (int i = 0; i < 3; ++i) {
    if (!columns[i]->empty() && *columns[i] == *columns[(i + 1) % 3])
      problems.add(text("two of text-column, text-pair-column and ", last, " are '", *columns[i],
                        "'; give each its own column"),
                   {"text-column", "text-pair-column", last});
  }
}

}  // namespace

RowsKind rows_of(const ModelConfig& model) {
  const FamilyTask* const task = find_task(model);
  return task == nullptr ? RowsKind::None : task->rows;
}

std::vector<std::string> listed_columns(std::string_view names) {
  std::vector<std::string> out;
  for (const std::string_view name : split(names, ',')) out.emplace_back(trim(name));
  return out;
}

bool streams(const RunConfig& config) {
  if (config.stream) return true;
  if (config.data.size() < 2 || !config.program_data.empty()) return false;
  try {
    const BlendList blend = parse_blend(config.data);
    return !blend.weights.empty() && std::ranges::none_of(blend.prefixes, IndexedDataset::exists);
  } catch (const Error&) {  // whoever reads the data says so
    return false;
  }
}

void find_row_problems(const RunConfig& config, Problems& problems) {
  if (find_task(config.model) == nullptr) return;  // reported before
  find_label_problems(config, problems);
  for (const std::string_view name : data_fields(rows::kStreams)) {
    const auto given = config.given.find(name);
    if (given != config.given.end() && !streams(config))
      problems.add(
          text(given->second, " does nothing without stream; add --stream, or leave it ", "out"),
          {name, "stream"});
  }
  for (const std::string_view name : data_fields(rows::kPictures)) {
    const auto given = config.given.find(name);
    if (given != config.given.end() && !has_task(config.model, kImageClassification))
      problems.add(text(given->second, " does nothing with task ", family_task(config.model).name,
                        "; leave it out"),
                   {name, "task"});
  }
  if (trains_on_rows(config)) {
    if (!config.text_column.empty() && config.text_column == config.target_column)
      problems.add(text("text-column and target-column are both '", config.text_column,
                        "'; give one column for sources and one for targets"),
                   {"text-column", "target-column"});
    if (config.packing == to_text(Packing::Bfd) &&
        !reads_field(config.model, "reset-attention-mask"))
      problems.add(text("packing bfd keeps the documents of a sample apart, which family ",
                        config.model.family, " cannot; give packing ", to_text(Packing::Wrapped)),
                   {"packing", "family"});
    return;
  }
  for (const std::string_view name : data_fields(rows::kRows)) {
    const auto given = config.given.find(name);
    const bool of_pictures =
        name == "skip-bad-rows" && has_task(config.model, kImageClassification);
    if (given != config.given.end() && !of_pictures)
      problems.add(
          text(given->second, " does nothing without text-column; give the column of training ",
               "texts, or leave it out"),
          {name, "text-column"});
  }
  for (const std::string_view name : data_fields(rows::kDialogues)) {
    const auto given = config.given.find(name);
    if (given != config.given.end())
      problems.add(text(given->second, " does nothing without dialogues; give JSON lines with ",
                        "messages, or leave it out"),
                   {name});
  }
}

}  // namespace tessera
