#include "tessera/config/family_fields.h"

#include <map>

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

/// ": gpt2, llama, mine (doc; without a preset rope-base 7)": the library's have a page of their own.
std::string choices_text(const OwnFamilies& own) {
  std::vector<std::string> out;
  for (const ModelFamily* family : all_families(own)) {
    out.emplace_back(family->name);
    if (std::ranges::find(own, family) == own.end()) continue;
    const std::string other = published_text(*family);
    out.back() += text(" (", family->doc, other.empty() ? "" : "; without a preset ", other, ")");
  }
  return text(": ", join(out), "; docs/reference/families.md describes them");
}

/// ": causal_lm (doc); masked_lm (doc)"
std::string tasks_text(const OwnFamilies& own) {
  std::vector<std::string> out;
  for (const ModelFamily* family : all_families(own)) {
    for (const FamilyTask& task : family->tasks) {
      std::string shown = text(task.name, " (", task.doc, ")");
      if (std::ranges::find(out, shown) == out.end()) out.push_back(std::move(shown));
    }
  }
  return text(": ", join(out, "; "));
}

/// "decoders (not gpt2), bert or t5": kinds of families of which most are among them by their name.
std::string with_kinds(const std::vector<std::string>& names, const OwnFamilies& own) {
  constexpr std::size_t kFewOfKind = 3, kMostMissing = 2;
  std::map<FamilyKind, std::vector<std::string>> among, missing;
  for (const ModelFamily* family : all_families(own)) {
    const bool is_there = std::ranges::find(names, family->name) != names.end();
    (is_there ? among : missing)[kind_of(*family)].emplace_back(family->name);
  }
  std::vector<std::string> out;
  for (const auto& [kind, found] : among) {
    const std::vector<std::string>& lacking = missing[kind];
    if (found.size() < kFewOfKind || lacking.size() > kMostMissing) {
      out.insert(out.end(), found.begin(), found.end());
    } else {
      out.push_back(
          text(to_text(kind), "s", lacking.empty() ? "" : text(" (not ", any_of(lacking), ")")));
    }
  }
  return any_of(out);
}

}  // namespace

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
  const auto take_note = [&](const ModelFamily& family, std::span<const ReadField> reads) {
    for (const ReadField& read : reads) {
      if (read.name != field.name || read.note.empty()) continue;
      auto known = std::ranges::find(notes, read.note, [](const auto& note) { return note.first; });
      if (known == notes.end()) known = notes.insert(known, {read.note, {}});
      std::vector<std::string>& whose = known->second;
      if (whose.empty() || whose.back() != family.name) whose.emplace_back(family.name);
    }
  };
  for (const ModelFamily* family : all) {
    take_note(*family, family->reads);
    for (const FamilyTask& task : family->tasks) take_note(*family, task.reads);
  }
  for (const auto& [note, families] : notes)
    out += text("; of ", with_kinds(families, own), " ", note);
  const std::vector<std::string> readers = readers_of(field, own);
  std::vector<std::string> others;
  for (const ModelFamily* family : all) {
    if (!is_read(field, *family)) others.emplace_back(family->name);
  }
  if (others.size() >= readers.size()) {
    out += text(", for ", with_kinds(readers, own));
  } else if (!others.empty()) {
    out += text(", not for ", with_kinds(others, own));
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
      copy_field(field, config, standard);
  }
}

}  // namespace tessera
