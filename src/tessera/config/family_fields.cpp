#include "tessera/config/family_fields.h"

#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::string_view kFamilyField = "family", kTaskField = "task",
                           kOptimizerField = "optimizer";

/// "gpt2", "gpt2 or bert", "gpt2, bert or llama"
std::string any_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out += text(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return out;
}

std::vector<std::string> readers_of(const Field& field, const OwnFamilies& own) {
  std::vector<std::string> out;
  for (const ModelFamily* family : all_families(own)) {
    if (is_read(field, *family)) out.emplace_back(family->name);
  }
  return out;
}

bool is_choice(const Field& field) {
  return field.name == kFamilyField || field.name == kTaskField;
}

bool is_among(const Field& field, std::span<const ReadField> reads) {
  return std::ranges::find(reads, field.name, &ReadField::name) != reads.end();
}

/// Tasks of these families that read the field, where all families that do read it for some tasks
/// alone.
std::vector<std::string> tasks_that_read(const Field& field,
                                         const std::vector<const ModelFamily*>& families) {
  std::vector<std::string> out;
  for (const ModelFamily* family : families) {
    if (is_among(field, family->reads)) return {};
    for (const FamilyTask& task : family->tasks) {
      const bool known = std::ranges::find(out, task.name) != out.end();
      if (is_among(field, task.reads) && !known) out.emplace_back(task.name);
    }
  }
  return out;
}

/// All of them, in the order of OptimizerKind.
std::vector<std::string> optimizers() {
  return split(kind_text(*find_field(kOptimizerField).field), '|');
}

std::vector<std::string> optimizers_that_read(const Field& field) {
  std::vector<std::string> out;
  for (int kind = 0; const std::string& name : optimizers()) {
    if (reads_option(static_cast<OptimizerKind>(kind++), field.name)) out.push_back(name);
  }
  return out;
}

/// "bias false, tied-head false": what a family does not begin with as others do.
std::string published_text(const ModelFamily& family) {
  RunConfig standard, config;
  config.model = published(family);
  standard.model.family = family;
  config.model.vocabulary = standard.model.vocabulary;
  std::vector<std::string> out;
  for (const Field& field : fields()) {
    const std::string value = get_text(field, config);
    if (is_read(field, family) && value != get_text(field, standard))
      out.push_back(text(field.name, " ", value));
  }
  return join(out);
}

/// ": gpt2 (doc), llama (doc; without a preset tied-head false)"
std::string choices_text(const OwnFamilies& own) {
  std::string out;
  for (const ModelFamily* family : all_families(own)) {
    const std::string other = published_text(*family);
    out += text(out.empty() ? ": " : "; ", family->name, " (", family->doc,
                other.empty() ? "" : text("; without a preset ", other), ")");
  }
  return out;
}

/// ": causal_lm (doc), of gpt2, llama; masked_lm (doc), of bert"
std::string tasks_text(const OwnFamilies& own) {
  std::vector<const FamilyTask*> tasks;
  std::vector<std::string> families;
  for (const ModelFamily* family : all_families(own)) {
    for (const FamilyTask& task : family->tasks) {
      const auto known = std::ranges::find(tasks, task.name, &FamilyTask::name);
      if (known == tasks.end()) {
        tasks.push_back(&task);
        families.emplace_back(family->name);
      } else {
        families[static_cast<std::size_t>(known - tasks.begin())] += text(", ", family->name);
      }
    }
  }
  std::string out;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    out += text(i == 0 ? ": " : "; ", tasks[i]->name, " (", tasks[i]->doc, "), of ", families[i]);
  return out;
}

}  // namespace

bool is_read(const Field& field, const ModelFamily& family) {
  return field.group != FieldGroup::Model || is_choice(field) || reads_field(family, field.name);
}

bool is_read(const Field& field, const RunConfig& config) {
  if (field.group == FieldGroup::Optimizer) return reads_option(config.optimizer.kind, field.name);
  return field.group != FieldGroup::Model || is_choice(field) ||
         reads_field(config.model, field.name);
}

std::string families_text(const Field& field, const OwnFamilies& own) {
  if (field.group == FieldGroup::Optimizer) {
    const std::vector<std::string> readers = optimizers_that_read(field);
    return readers.size() < optimizers().size() ? text(", with --optimizer ", any_of(readers)) : "";
  }
  if (field.group != FieldGroup::Model) return "";
  if (field.name == kFamilyField) return choices_text(own);
  if (field.name == kTaskField) return tasks_text(own);
  std::string out;
  const std::vector<const ModelFamily*> all = all_families(own);
  std::vector<std::pair<std::string_view, std::vector<std::string>>> notes;  // and whose
  for (const ModelFamily* family : all) {
    for (const ReadField& read : family->reads) {
      if (read.name != field.name || read.note.empty()) continue;
      auto known = std::ranges::find(notes, read.note, [](const auto& note) { return note.first; });
      if (known == notes.end()) known = notes.insert(known, {read.note, {}});
      known->second.emplace_back(family->name);
    }
  }
  for (const auto& [note, families] : notes)
    out += text("; of family ", any_of(families), " ", note);
  const std::vector<std::string> readers = readers_of(field, own);
  std::vector<std::string> others;
  for (const ModelFamily* family : all) {
    if (!is_read(field, *family)) others.emplace_back(family->name);
  }
  if (others.size() >= readers.size()) {
    out += text(", with --family ", any_of(readers));
  } else if (!others.empty()) {
    out += text(", not with --family ", any_of(others));
  }
  const std::vector<std::string> tasks = tasks_that_read(field, all);
  if (!tasks.empty()) out += text(", with --task ", any_of(tasks));
  return out;
}

void find_unread_fields(const RunConfig& config, Problems& problems) {
  const ModelFamily& family = *config.model.family;
  const auto check_reads = [&](std::span<const ReadField> all) {
    for (const ReadField& read : all) {
      const Field* const field = find_field(read.name).field;
      if (field == nullptr || field->group != FieldGroup::Model || field->name != read.name)
        problems.add(text("family ", family.name, " reads '", read.name,
                          "', which is not a model field", near_fields(read.name)),
                     {kFamilyField});
    }
  };
  check_reads(family.reads);
  for (const FamilyTask& task : family.tasks) check_reads(task.reads);
  for (const auto& [name, written] : config.given) {
    const Field& field = *find_field(name).field;
    if (is_read(field, config)) continue;
    const bool of_model = field.group == FieldGroup::Model;
    const bool of_task = of_model && is_read(field, family);
    const std::string_view kind = of_task ? kTaskField : of_model ? kFamilyField : kOptimizerField;
    const std::vector<std::string> readers = of_task    ? tasks_that_read(field, {&family})
                                             : of_model ? readers_of(field, config.families)
                                                        : optimizers_that_read(field);
    problems.add(text(written, " does nothing with ", kind, " ",
                      get_text(*find_field(kind).field, config), "; ",
                      readers.empty() ? "no family reads it, so leave it out"
                                      : text("leave it out, or give ", kind, " ", any_of(readers))),
                 {kind, field.name});
  }
}

void forget_unread_fields(RunConfig& config) {
  RunConfig standard;
  standard.families = config.families;
  standard.model = published(config.model.family);
  standard.model.vocabulary = 0;
  for (const Field& field : fields()) {
    if (!is_read(field, config) && !config.given.contains(field.name))
      set_text(field, config, get_text(field, standard), field.name);
  }
}

}  // namespace tessera
