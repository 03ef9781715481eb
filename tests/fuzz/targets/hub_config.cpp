/// Of models in Hugging Face's folders: config.json, and the index of weights in several files.

#include <algorithm>

#include "fuzz/target.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_labels.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera::fuzz {

namespace {

constexpr std::int64_t kFew = 100;  // layers whose tensors are listed

/// A model that can be built has a list of tensors, and is read again from what is written of it.
void use(const HubFamily& family, const ModelConfig& model) {
  if (!problems(model).empty()) return;
  if (std::max(model.layers, model.decoder()) <= kFew)
    check(!hub_tensors(family, model, HubHeads::OfAllTasks).empty(), "no tensors");
  if (family.only_read) return;
  HubJson told = HubJson::object();
  family.write(model, told);
  const HubConfig written(told.dump(), "written");
  ModelConfig again = published(*family.family);
  family.read(written, again);
  again.context = model.context;
  again.classes = model.classes;
  check(again == with_derived(model) || with_derived(again) == with_derived(model),
        "another model");
}

void run(std::string_view input) {
  if (input.find("weight_map") != std::string_view::npos) {
    for (const auto& entry : parse_hub_index(input, "input"))
      then([&] {
        check(entry.second.find('/') == std::string::npos, "a file elsewhere: ", entry.second);
      });
    return;
  }
  const HubConfig config(input, "input");
  const HubFamily& family = hub_family_of(config);
  ModelConfig model = published(*family.family);
  family.read(config, model);
  model.context = model.positions > 0 ? model.positions : 8;
  if (reads_field(*family.family, "classes")) model.classes = read_labels(config).count;
  then([&] { use(family, model); });
}

}  // namespace

const Target kTarget = {64 << 20, 4096, run};

}  // namespace tessera::fuzz
