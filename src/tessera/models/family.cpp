#include "tessera/models/family.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

std::span<const ModelFamily> model_families() {
  static const ModelFamily all[] = {
      kGpt2,
      kLlama,
      kBert,
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

Task task_of(const ModelConfig& config) { return find_model(config.family).task(config); }

}  // namespace tessera
