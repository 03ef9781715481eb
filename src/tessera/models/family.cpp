#include "tessera/models/family.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

std::span<const ModelFamily> model_families() {
  static const ModelFamily all[] = {
      kGpt2,
      kLlama,
      kBert,
      kTransformer,
  };
  return all;
}

namespace {

/// nullptr: an unknown family.
const ModelFamily* known_family(std::string_view name) {
  const std::span<const ModelFamily> all = model_families();
  const auto found = std::ranges::find(all, name, &ModelFamily::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

const ModelFamily& find_model(std::string_view family) {
  if (const ModelFamily* known = known_family(family)) return *known;
  std::vector<std::string> names;
  for (const ModelFamily& known : model_families()) names.emplace_back(known.name);
  fail(Fault::Usage, "unknown model family '", family, "'; known are ", join(names));
}

std::int64_t vocabulary_for(std::string_view family, std::int64_t of_data) {
  const ModelFamily* known = known_family(family);
  return of_data + (known == nullptr ? 0 : known->special_tokens);
}

void complete(ModelConfig& config) {
  if (const ModelFamily* known = known_family(config.family)) known->complete(config);
}

std::int64_t layer_count(const ModelConfig& config) {
  std::int64_t out = 0;
  for (const LayerStack& stack : find_model(config.family).stacks(config))
    out += std::min(stack.layers, kMaxLayers + 1);
  return out;
}

std::vector<std::string> layer_blocks(const ModelConfig& config) {
  std::vector<std::string> out;
  for (const LayerStack& stack : find_model(config.family).stacks(config)) {
    for (std::int64_t i = 0; i < stack.layers; ++i) out.push_back(text(stack.block, ".", i));
  }
  return out;
}

Task task_of(const ModelConfig& config) { return find_model(config.family).task(config); }

}  // namespace tessera
