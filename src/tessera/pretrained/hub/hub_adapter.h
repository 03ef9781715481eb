#pragma once
/// Adapters (LoRA) in PEFT's folders: adapter_config.json and adapter_model.safetensors.

#include <map>
#include <string>
#include <vector>

#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_match.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera {

inline constexpr const char *kHubAdapterConfig = "adapter_config.json",
                            *kHubAdapterWeights = "adapter_model.safetensors";
/// Before the names of a model's tensors.
inline constexpr std::string_view kHubAdapterPrefix = "base_model.model.";

/// The tensors of an adapter's file: A and B of each layer that has some, and the task's own block,
/// which is trained whole. `model` has the adapters. Errors: Fault::Usage: layers that PEFT sees
/// otherwise.
std::vector<HubTensor> adapter_tensors(const HubFamily& family, const ModelConfig& model);

/// What adapter_config.json says. Errors: Fault::Data: a key that would change what is computed.
struct HubAdapterConfig {
  LoraConfig lora;                 // without targets, which the tensors tell
  std::string base;                // base_model_name_or_path
  TaskHead head = TaskHead::None;  // that of task_type; None: it says none that is known
  std::string model_class;         // of transformers, which PEFT writes where there is no task_type
};
HubAdapterConfig read_adapter_config(const HubConfig& from);
/// What PEFT calls the model's task; empty: nothing.
std::string_view peft_task_type(const ModelConfig& model);
/// adapter_config.json for such a model. `base`: as PEFT finds it.
std::string adapter_config_text(const HubFamily& family, const ModelConfig& model,
                                const std::string& base);

struct HubAdapter {
  /// `model`, the base's, gets the adapters of the folder, which become its parameters, and the task
  /// that they were trained for, with its head. Errors: Fault::Checkpoint: tensors that are of no
  /// layer of the base, or of other shapes, or that would be read otherwise; layers that lack some.
  HubAdapter(const std::string& folder, const HubAdapterConfig& config, const HubFamily& family,
             HubModel& model);

  HubWeights weights;
  HubMatch match;
  bool changes_base = false;  // it has weights in place of the base's, beside the task's own block
};

}  // namespace tessera
