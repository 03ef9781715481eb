#pragma once
/// Fields of what is trained where not all of a model is, a row each.

#include "tessera/config/fields/row.h"

namespace tessera::rows {

inline constexpr std::string_view kLora = "with --lora-rank";

// clang-format off
inline constexpr Field kAdapterFields[] = {
    planned({"lora-rank", "", FieldGroup::Adapters, OnResume::Model, "",
     "train low-rank adapters of so many rows in place of the weights; 0: none",
     [](RunConfig& c) -> Slot { return &c.model.lora.rank; }}),
    planned({"lora-alpha", "", FieldGroup::Adapters, OnResume::Model, "",
     "what adapters add is multiplied by lora-alpha / lora-rank; 0: twice the rank",
     [](RunConfig& c) -> Slot { return &c.model.lora.alpha; }, kAnyLow, kAnyHigh, kLora}),
    planned({"rslora", "use-rslora", FieldGroup::Adapters, OnResume::Model, "",
     "multiply by lora-alpha / sqrt(lora-rank)",
     [](RunConfig& c) -> Slot { return &c.model.lora.rank_stabilized; }, kAnyLow, kAnyHigh, kLora}),
    planned({"dora", "use-dora", FieldGroup::Adapters, OnResume::Model, "",
     "also train how long the rows of adapted weights are (DoRA)",
     [](RunConfig& c) -> Slot { return &c.model.lora.decomposed; }, kAnyLow, kAnyHigh, kLora}),
    planned({"lora-dropout", "", FieldGroup::Adapters, OnResume::Notice, "",
     "share of values dropped that adapters read",
     [](RunConfig& c) -> Slot { return &c.model.lora.dropout; }, kAnyLow, kAnyHigh, kLora}),
    planned({"lora-targets", "lora-target-modules", FieldGroup::Adapters, OnResume::Model, "NAME",
     "layers that have adapters: q, k, v, qkv, kv, proj, up, gate, down, all-linear; without: q and v",
     [](RunConfig& c) -> Slot { return &c.model.lora.targets; }}),
    planned({"save-base", "", FieldGroup::Adapters, OnResume::Free, "",
     "hold the weights that adapters are of in every checkpoint; without: name their folder",
     [](RunConfig& c) -> Slot { return &c.save_base; }, kAnyLow, kAnyHigh, kLora}),
    planned({"freeze", "", FieldGroup::Adapters, OnResume::Confirm, "PATTERN",
     "parameters that are not trained, by path; '*' matches any characters, as in 'layers.0.*'",
     [](RunConfig& c) -> Slot { return &c.freeze; }}),
};
// clang-format on

}  // namespace tessera::rows
