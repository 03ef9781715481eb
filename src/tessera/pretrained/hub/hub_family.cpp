#include "tessera/pretrained/hub/hub_family.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr const HubFamily* kFamilies[] = {&kHubAlbert, &kHubBart,    &kHubBert, &kHubGpt2,
                                          &kHubLlama,  &kHubRoberta, &kHubT5,   &kHubVit};
constexpr std::array<std::string_view, 2> kSuffixes = {".weight", ".bias"};

std::string of_layer(std::string_view name, std::int64_t layer) {
  const std::size_t at = name.find('#');
  if (at == std::string_view::npos) return std::string(name);
  return text(name.substr(0, at), layer, name.substr(at + 1));
}

/// Those of the stack that a row is of.
std::int64_t layers_of(const HubName& name, const ModelConfig& config) {
  for (const LayerStack& stack : config.family->stacks(config)) {
    if (name.ours.starts_with(text(stack.block, ".#"))) return stack.layers;
  }
  return config.layers;
}

/// The tensors of one row, in one layer.
void add(const HubName& name, std::int64_t layer, std::vector<HubTensor>& out) {
  const std::string ours = of_layer(name.ours, layer), theirs = of_layer(name.theirs, layer);
  for (const std::string_view suffix : kSuffixes) {
    if (ours.ends_with(suffix)) {
      out.push_back({ours, theirs, name.rows, name.order});
      return;
    }
  }
  for (const std::string_view suffix : kSuffixes)
    out.push_back({text(ours, suffix), text(theirs, suffix), name.rows, name.order});
}

}  // namespace

std::span<const HubFamily* const> hub_families() { return kFamilies; }

const HubFamily& hub_family_of(const HubConfig& config) {
  const std::string type = config.word("model_type", "");
  std::vector<std::string> known;
  for (const HubFamily* family : kFamilies) {
    if (family->model_type == type) return *family;
    known.emplace_back(family->model_type);
  }
  fail(Fault::Data, config.path(), ": model_type is '", printable(type),
       "'; models that can be loaded are ", join(known));
}

const HubFamily* hub_family_of(const FamilyRef& family) {
  for (const HubFamily* each : kFamilies) {
    if (each->family->name == family.name()) return each;  // or what a program replaced it by
  }
  return nullptr;
}

std::string_view hub_class_of(const HubFamily& family, const ModelConfig& config) {
  std::vector<std::string> tasks;
  for (const HubClass& each : family.classes) {
    if (has_task(config, each.task)) return each.name;
    tasks.emplace_back(each.task);
  }
  fail(Fault::Usage, "export: a model of family ", config.family, " for task ",
       family_task(config).name,
       " has no class in transformers that Tessera knows; it knows those ", "for ", join(tasks));
}

std::string_view task_in_hub(const HubFamily& family, const HubConfig& config) {
  if (!config.has("architectures") || !config.json()["architectures"].is_array())
    return family.classes.front().task;
  for (const HubJson& name : config.json()["architectures"]) {
    for (const HubClass& each : family.classes) {
      if (name.is_string() && name.get<std::string>() == each.name) return each.task;
    }
  }
  return family.classes.front().task;
}

std::vector<HubTensor> hub_tensors(const HubFamily& family, const ModelConfig& config,
                                   HubHeads heads) {
  const std::string_view task = family_task(config).name;
  std::vector<HubTensor> out;
  for (const HubName& name : family.names) {
    if (config.tied_head && name.ours == "head.weight") continue;
    if (name.is_in != nullptr && !name.is_in(config)) continue;
    const std::vector<std::string> tasks = split(name.tasks, ' ');
    const bool of_task = name.tasks.empty() || std::ranges::find(tasks, task) != tasks.end();
    if (heads == HubHeads::OfTask && !of_task) continue;
    const std::int64_t layers =
        name.ours.find('#') == std::string_view::npos ? 1 : layers_of(name, config);
    for (std::int64_t i = 0; i < layers; ++i) add(name, i, out);
  }
  return out;
}

}  // namespace tessera
