#include "tessera/pretrained/hub/hub_family.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/models/layer.h"
#include "tessera/pretrained/hub/hub_labels.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 2> kSuffixes = {".weight", ".bias"};

/// The name with a number in place of a mark.
std::string numbered(std::string_view name, char mark, std::int64_t number) {
  const std::size_t at = name.find(mark);
  if (at == std::string_view::npos) return std::string(name);
  return text(name.substr(0, at), number, name.substr(at + 1));
}

/// Those of the stack that a row is of.
std::int64_t layers_of(const HubName& name, const ModelConfig& config) {
  for (const LayerStack& stack : config.family->stacks(config)) {
    if (name.ours.starts_with(text(stack.block, ".#"))) return stack.layers;
  }
  return config.layers;
}

/// Those of all experts, of one row in one layer.
void add_experts(const HubTensor& row, std::int64_t experts, std::vector<HubTensor>& out) {
  for (std::int64_t e = 0; e < experts; ++e) {
    HubTensor one = row;
    one.theirs = numbered(row.theirs, '@', e);
    one.expert = e;
    out.push_back(std::move(one));
  }
}

/// The tensors of one row, in one layer.
void add(const HubName& name, std::string_view prefix, std::int64_t layer,
         std::vector<HubTensor>& out) {
  const std::string ours = numbered(name.ours, '#', layer),
                    theirs = text(prefix, numbered(name.theirs, '#', layer));
  if (ours.ends_with(".weight") || ours.ends_with("bias")) {
    out.push_back({ours, theirs, name.rows, name.order, name.heads});
    return;
  }
  for (const std::string_view suffix : kSuffixes)
    out.push_back({text(ours, suffix), text(theirs, suffix), name.rows, name.order, name.heads});
}

}  // namespace

const HubFamily& hub_family_of(const HubConfig& config) {
  const std::string type = config.has("model_type") ? config.word("model_type") : "";
  std::vector<std::string> known;
  for (const HubFamily* family : hub_families()) {
    if (family->model_type == type) return *family;
    known.emplace_back(family->model_type);
  }
  if (type.empty())
    fail(Fault::Data, config.path(), " has no model_type, so its model is unknown; write ",
         "one of ", join(known), " into it, or download the config.json of the model again");
  fail(Fault::Data, config.path(), ": model_type is '", printable(type), "'; supported are ",
       join(known));
}

const HubFamily* hub_family_of(const FamilyRef& family) {
  for (const HubFamily* each : hub_families()) {
    if (each->family->name == family.name() && !each->only_read)
      return each;  // or what a program replaced it by
  }
  return nullptr;
}

const HubClass* find_hub_class(const HubFamily& family, TaskHead head) {
  const auto found = std::ranges::find_if(family.classes, [&](const HubClass& each) {
    return each.head == head && each.with == nullptr;
  });
  return found == family.classes.end() ? nullptr : &*found;
}

std::vector<std::string> hub_tasks(const HubFamily& family) {
  std::vector<std::string> out;
  for (const FamilyTask& task : family.family->tasks) {
    if (task.hub_head == TaskHead::Body)
      out.push_back(text(task.name, " (", family.base_class, ")"));
    else if (const HubClass* const its = find_hub_class(family, task.hub_head))
      out.push_back(text(task.name, " (", its->name, ")"));
  }
  return out;
}

std::string_view hub_class_of(const HubFamily& family, const ModelConfig& config) {
  if (has_head(config, TaskHead::Body)) return family.base_class;
  for (const HubClass& each : family.classes) {
    const bool has = each.with == nullptr || config.*each.with;
    if (has && each.head == family_task(config).hub_head) return each.name;
  }
  std::vector<std::string> tasks;
  for (const FamilyTask& task : family.family->tasks) {
    if (find_hub_class(family, task.hub_head) != nullptr) tasks.emplace_back(task.name);
  }
  fail(Fault::Usage, "export: a model of family ", config.family, " for task ",
       family_task(config).name, " has no known class in transformers; supported are ", "",
       join(tasks));
}

namespace {

/// problem_type of config.json, or what transformers takes it for; empty: whatever the labels are.
std::string problem_type(const HubFamily& family, const HubConfig& config, TaskHead head) {
  const HubJson* const said = config.find("problem_type");
  const bool known = std::ranges::any_of(family.family->tasks, [&](const FamilyTask& task) {
    return task.hub_head == head && !task.problem_type.empty();
  });
  if (!known) return "";
  if (said == nullptr || said->is_null())
    return read_labels(config).count == 1 ? std::string(kRegression.problem_type) : "";
  std::vector<std::string> types;
  for (const FamilyTask& task : family.family->tasks) {
    if (task.hub_head != head || task.problem_type.empty()) continue;
    if (*said == std::string(task.problem_type)) return std::string(task.problem_type);
    types.emplace_back(task.problem_type);
  }
  config.refuse("problem_type", text("the family learns ", join(types), "; give one of them"));
}

}  // namespace

const FamilyTask* find_hub_task(const HubFamily& family, TaskHead head,
                                std::string_view problem_type) {
  const FamilyTask* first = nullptr;
  for (const FamilyTask& task : family.family->tasks) {
    if (task.hub_head != head) continue;
    if (task.problem_type == problem_type) return &task;
    if (first == nullptr) first = &task;
  }
  return first;
}

HubTask task_in_hub(const HubFamily& family, const HubConfig& config, TaskGiven given) {
  const HubTask first{&family.family->tasks.front()};
  if (!config.has("architectures")) return first;
  const HubJson& named = config.json()["architectures"];
  const auto is_named = [&](std::string_view name) {
    return std::ranges::any_of(named, [&](const HubJson& each) { return each == name; });
  };
  const auto is_text = [](const HubJson& name) { return name.is_string(); };
  if (!named.is_array() || !std::ranges::all_of(named, is_text))
    config.refuse("architectures", "it must be a list of names of classes");
  for (const FamilyTask& task : family.family->tasks) {
    for (const HubClass& its : family.classes) {
      if (its.head != task.hub_head || !is_named(its.name)) continue;
      return {find_hub_task(family, task.hub_head, problem_type(family, config, task.hub_head)),
              &its};
    }
  }
  const bool base = named.empty() || is_named(family.base_class);
  if (base || given == TaskGiven::Yes) return first;
  config.refuse("architectures",
                text("the head of that class is unknown; give --task: ", join(hub_tasks(family))));
}

std::vector<HubTensor> hub_tensors(const HubFamily& family, const ModelConfig& config,
                                   HubHeads heads) {
  const TaskHead head = family_task(config).hub_head;
  const bool labels = heads == HubHeads::OfTask && head == TaskHead::SequenceClassification;
  ModelConfig without = config;  // as layers without experts have it
  without.experts = {};
  std::vector<HubTensor> out;
  const auto add_all = [&](const HubName& name, std::string_view prefix) {
    if (config.tied_head && name.ours == "head.weight") return;
    if (heads == HubHeads::OfTask && !is_of(name.heads, head)) return;
    const bool of_layers = name.ours.find('#') != std::string_view::npos;
    const std::int64_t layers = of_layers ? layers_of(name, config) : 1;
    for (std::int64_t i = name.first; i < layers; ++i) {
      const bool dense = of_layers && !has_experts(config, i);
      if (name.is_in != nullptr && !name.is_in(dense ? without : config)) continue;
      if (name.rows != HubRows::Expert) {
        add(name, prefix, i, out);
        continue;
      }
      std::vector<HubTensor> rows;
      add(name, prefix, i, rows);
      for (const HubTensor& row : rows) add_experts(row, dense ? 0 : config.experts.experts, out);
    }
  };
  for (const HubName& name : family.body) add_all(name, family.prefix);
  for (const HubName& name : family.names)
    add_all(name, labels && name.heads == TaskHead::None ? family.label_prefix : "");
  if (heads == HubHeads::OfTask && head == TaskHead::Body) {  // files of it lack the prefix
    for (HubTensor& tensor : out) {
      if (tensor.theirs.starts_with(family.prefix)) tensor.theirs.erase(0, family.prefix.size());
    }
  }
  return out;
}

HubModel read_hub_model(const HubFamily& family, const HubConfig& from, TaskGiven given) {
  HubModel out{published(*family.family), task_in_hub(family, from, given)};
  ModelConfig& config = out.config;
  config.task = out.task.task->name;
  if (out.task.named != nullptr && out.task.named->with != nullptr)
    config.*out.task.named->with = true;
  config.context = kMostHubContext;
  read_keys(family.keys, family.harmless, from, config, out.notices);
  family.read(from, config);
  if (config.positions > 0) config.context = config.positions;
  config.context = std::min(config.context, kMostHubContext);
  if (reads_field(config, "classes")) {
    HubLabels found = read_labels(from);
    config.classes = found.count;
    out.labels = std::move(found.names);
  }
  complete(config);
  const FieldProblems wrong = problems(config);
  if (wrong.empty()) return out;
  fail(Fault::Data, from.path(), ": ", join(wrong.texts(), "; "), " (",
       sizes_text(family.keys, from), ")");
}

}  // namespace tessera
