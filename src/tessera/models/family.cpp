#include "tessera/models/family.h"

#include "tessera/base/text.h"

namespace tessera {

std::span<const ModelFamily> model_families() {
  static const ModelFamily all[] = {
      kGpt2,
      kLlama,
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

Task task_of(const ModelConfig& config) { return find_model(config.family).task(config); }

}  // namespace tessera
