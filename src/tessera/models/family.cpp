#include "tessera/models/family.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

std::span<const ModelFamily* const> model_families() {
  static constexpr const ModelFamily* kAll[] = {
      &kGpt2, &kLlama, &kBert, &kRoberta, &kAlbert, &kTransformer, &kT5, &kBart, &kVit,
  };
  return kAll;
}

std::vector<const ModelFamily*> all_families(const OwnFamilies& own) {
  const std::span<const ModelFamily* const> library = model_families();
  std::vector<const ModelFamily*> out(library.begin(), library.end());
  for (const ModelFamily* family : own) {
    require(family != nullptr, "a model family that the program brings is a null pointer");
    for (const ModelFamily* known : out)
      require(known->name != family->name, "two model families are called '", family->name,
              "'; give the one that you bring another name");
    out.push_back(family);
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

FamilyRef::FamilyRef() : family_(&kGpt2) {}
FamilyRef::FamilyRef(std::string_view name) : family_(&find_model(name)) {}
std::string_view FamilyRef::name() const { return family_->name; }

bool reads_field(const ModelFamily& family, std::string_view field) {
  return std::ranges::find(family.reads, field, &ReadField::name) != family.reads.end();
}

ModelConfig published(const FamilyRef& family) {
  ModelConfig out{.family = family};
  family->publish(out);
  return out;
}

std::int64_t vocabulary_for(const FamilyRef& family, std::int64_t of_data) {
  return of_data + family->special_tokens;
}

void complete(ModelConfig& config) { config.family->complete(config); }

std::int64_t vocabulary_for(const FamilyRef& family, const Vocabulary& of_data) {
  if (reads_field(*family, "special-tokens"))
    return of_data.size() + (family->tokens_of(of_data).empty() ? family->special_tokens : 0);
  return of_data.pair_tokens() ? of_data.size() : vocabulary_for(family, of_data.size());
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

Task task_of(const ModelConfig& config) { return config.family->task(config); }

}  // namespace tessera
