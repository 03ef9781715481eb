#include "tessera/models/family.h"

#include "tessera/models/expert_layers.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

std::vector<const ModelFamily*> all_families(const OwnFamilies& own) {
  const std::span<const ModelFamily* const> library = model_families();
  std::vector<const ModelFamily*> out(library.begin(), library.end());
  for (const ModelFamily* family : own) {
    require(family != nullptr, "a model family of the program is a null pointer");
    const auto known = std::ranges::find(out, family->name, &ModelFamily::name);
    if (known == out.end()) {
      out.push_back(family);
      continue;
    }
    require(family->replaces && !(*known)->replaces, "two model families are called '",
            family->name, "'; rename yours");
    *known = family;
  }
  return out;
}

const ModelFamily& find_model(std::string_view name, const OwnFamilies& own) {
  std::vector<std::string> names;
  for (const ModelFamily* known : all_families(own)) {
    if (known->name == name) return *known;
    names.emplace_back(known->name);
  }
  fail(Fault::Usage, "unknown model family '", name, "'; known are ", join(names));
}

FamilyRef::FamilyRef()
    : family_(*std::ranges::find(model_families(), true, &ModelFamily::standard)) {}
FamilyRef::FamilyRef(std::string_view name) : family_(&find_model(name)) {}
std::string_view FamilyRef::name() const { return family_->name; }

namespace {

bool has_field(std::span<const ReadField> reads, std::string_view field) {
  return std::ranges::find(reads, field, &ReadField::name) != reads.end();
}

}  // namespace

bool reads_field(const ModelFamily& family, std::string_view field) {
  return has_field(family.reads, field) ||
         std::ranges::any_of(family.tasks,
                             [&](const FamilyTask& task) { return has_field(task.reads, field); });
}

bool reads_field(const ModelConfig& config, std::string_view field) {
  const FamilyTask* const task = find_task(config);
  return has_field(config.family->reads, field) ||
         (task != nullptr && has_field(task->reads, field));
}

const FamilyTask* find_task(const ModelConfig& config) {
  const std::span<const FamilyTask> tasks = config.family->tasks;
  const std::string_view name = config.task;
  if ((name.empty() || name == kPretraining.name) && !tasks.empty()) return &tasks.front();
  const auto found = std::ranges::find_if(tasks, [&](const FamilyTask& task) {
    return task.name == name || (!task.misspelt.empty() && task.misspelt == name);
  });
  return found == tasks.end() ? nullptr : &*found;
}

const FamilyTask& family_task(const ModelConfig& config) {
  if (const FamilyTask* const found = find_task(config)) return *found;
  std::vector<std::string> names;
  for (const FamilyTask& task : config.family->tasks) names.emplace_back(task.name);
  fail(Fault::Usage, "task is '", config.task, "', which family ", config.family,
       " does not support; it has ", join(names));
}

bool has_head(const ModelConfig& config, TaskHead head) {
  const FamilyTask* const task = find_task(config);
  return task != nullptr && task->hub_head == head;
}

bool has_task(const ModelConfig& config, std::string_view name) {
  const FamilyTask* const task = find_task(config);
  return task != nullptr && task->name == name;
}

FamilyKind kind_of(const ModelFamily& family) {
  for (const FamilyTask& task : family.tasks) {
    if (task.writes == Writes::Texts) return FamilyKind::Decoder;
    if (task.writes == Writes::TextsFromSources) return FamilyKind::EncoderDecoder;
    if (task.name == kImageClassification) return FamilyKind::Vision;
  }
  return FamilyKind::Encoder;
}

std::string_view to_text(FamilyKind kind) {
  constexpr std::string_view kKinds[] = {"decoder", "encoder", "encoder-decoder", "vision model"};
  return kKinds[static_cast<std::size_t>(kind)];
}

ModelConfig published(const FamilyRef& family) {
  ModelConfig out{.family = family};
  family->publish(out);
  return out;
}

namespace {

std::int64_t lacked_by(const ModelConfig& config, const Vocabulary* vocabulary) {
  const FamilyTask* const task = find_task(config);
  const bool needs = task != nullptr && task->lacked_tokens != nullptr;
  return needs ? task->lacked_tokens(vocabulary) : 0;
}

}  // namespace

std::int64_t vocabulary_for(const ModelConfig& config, std::int64_t of_data) {
  return of_data + config.family->special_tokens + lacked_by(config, nullptr);
}

namespace {

/// One text for the same layers; what is no such text, or of other layers, is told as a problem.
void complete_expert_layers(ModelConfig& config) {
  if (config.expert_layers == "1" || config.layers < 1 || config.layers > kMaxLayers) return;
  try {
    const ExpertLayers layers(config.expert_layers);
    if (layers.listed() > 0 && layers.listed() != config.layers) return;
    std::vector<bool> all;
    for (std::int64_t i = 0; i < config.layers; ++i) all.push_back(layers.has(i));
    config.expert_layers = expert_layers_text(all);
  } catch (const Error&) {
  }
}

}  // namespace

void complete(ModelConfig& config) {
  if (const FamilyTask* const task = find_task(config)) config.task = task->name;
  config.family->complete(config);
  complete_expert_layers(config);
}

std::int64_t vocabulary_for(const ModelConfig& config, const Vocabulary& of_data) {
  const ModelFamily& family = *config.family;
  const bool has_them = reads_field(family, "special-tokens") ? !family.tokens_of(of_data).empty()
                                                              : of_data.pair_tokens().has_value();
  return of_data.size() + (has_them ? 0 : family.special_tokens) + lacked_by(config, &of_data);
}

std::string whose_special_tokens(const ModelConfig& config) {
  const FamilyTask* const task = find_task(config);
  const bool has_some = task != nullptr && task->lacked_tokens != nullptr;
  return text("family ", config.family, has_some ? text(" and task ", task->name) : "");
}

void take_special_tokens(ModelConfig& config, const Vocabulary& of_data) {
  if (config.special_tokens.empty()) config.special_tokens = config.family->tokens_of(of_data);
}

std::int64_t layer_count(const ModelConfig& config) {
  std::int64_t out = 0;
  for (const LayerStack& stack : config.family->stacks(config))
    out += std::min(stack.layers, kMaxLayers + 1);
  return out;
}

std::vector<std::string> layer_blocks(const ModelConfig& config) {
  std::vector<std::string> out;
  for (const LayerStack& stack : config.family->stacks(config)) {
    for (std::int64_t i = 0; i < stack.layers; ++i) out.push_back(text(stack.block, ".", i));
  }
  return out;
}

Task task_of(const ModelConfig& config) {
  const FamilyTask& row = family_task(config);
  Task out = row.make(config);
  const Writes writes = !out.text               ? Writes::Nothing
                        : out.text->source == 0 ? Writes::Texts
                                                : Writes::TextsFromSources;
  require(writes == row.writes, "task ", row.name, " of family ", config.family->name,
          ": TaskKind::writes is not what Task::text says; set it to Nothing, Texts or ",
          "TextsFromSources, as the task writes none, or from a prompt, or from a source");
  return out;
}

}  // namespace tessera
