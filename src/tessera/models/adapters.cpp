#include "tessera/models/adapters.h"

#include <set>

#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/models/parameter_shapes.h"

namespace tessera {

void train_adapters(const ModelConfig& model, OptimizerConfig& optimizer) {
  if (model.lora.rank == 0) return;
  optimizer.trained.assign(kLoraPaths.begin(), kLoraPaths.end());
  const FamilyTask* const task = find_task(model);
  if (task != nullptr && !task->head.empty()) optimizer.trained.push_back(text(task->head, ".*"));
}

void require_adapter_targets(const ModelConfig& model) {
  if (model.lora.rank == 0) return;
  std::set<std::string> adapted;  // last names of blocks
  for (const auto& [path, shape] : parameter_shapes(model)) {
    if (!path.ends_with(".lora_a")) continue;
    const std::string block = path.substr(0, path.rfind('.'));
    adapted.insert(block.substr(block.rfind('.') + 1));
  }
  const std::vector<std::string>& targets = model.lora.targets;
  require(!adapted.empty(), "no layer of family ", model.family, " is called ",
          targets.empty() ? join(kStandardLoraTargets) : join(targets),
          ", so none has an adapter; give others by lora-targets, as ", kAllLinear);
  for (const std::string& target : targets)
    require(target == kAllLinear || adapted.contains(target), "no layer of family ", model.family,
            " is called ", target, ", which lora-targets has; the others are ",
            join(std::vector<std::string>(adapted.begin(), adapted.end())));
}

}  // namespace tessera
