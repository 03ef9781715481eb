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

const ModelFamily& find_model(std::string_view family) {
  std::vector<std::string> names;
  for (const ModelFamily& known : model_families()) {
    if (known.name == family) return known;
    names.emplace_back(known.name);
  }
  fail(Fault::Usage, "unknown model family '", family, "'; known are ", join(names));
}

std::int64_t vocabulary_for(std::string_view family, std::int64_t of_data) {
  const auto known = std::ranges::find(model_families(), family, &ModelFamily::name);
  return of_data + (known == model_families().end() ? 0 : known->special_tokens);
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
