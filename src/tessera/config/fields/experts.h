#pragma once
/// Fields of models whose feed-forward layers are experts, a row each.

#include "tessera/config/fields/row.h"

namespace tessera::rows {

// clang-format off
inline constexpr Field kExpertFields[] = {
    planned({"num-experts", "", FieldGroup::Model, OnResume::Model, "",
     "experts of a layer, each a feed-forward layer of its own",
     [](RunConfig& c) -> Slot { return &c.model.experts.experts; }}),
    planned({"moe-router-topk", "", FieldGroup::Model, OnResume::Model, "",
     "experts that each token reads: those that the router finds most probable",
     [](RunConfig& c) -> Slot { return &c.model.experts.chosen; }}),
    planned({"moe-router-pre-softmax", "", FieldGroup::Model, OnResume::Model, "",
     "weight the chosen experts by their probabilities among all; without: among the chosen",
     [](RunConfig& c) -> Slot { return &c.model.experts.pre_softmax; }}),
    planned({"moe-shared-expert-intermediate-size", "", FieldGroup::Model, OnResume::Model, "",
     "hidden channels of a feed-forward layer that every token reads beside its experts; 0: none",
     [](RunConfig& c) -> Slot { return &c.model.experts.shared_width; }}),
    planned({"moe-shared-expert-gate", "", FieldGroup::Model, OnResume::Model, "",
     "multiply it by the sigmoid of a linear layer of the token",
     [](RunConfig& c) -> Slot { return &c.model.experts.shared_gate; }}),
    planned({"moe-aux-loss-coeff", "", FieldGroup::Model, OnResume::Notice, "",
     "weight of the loss of unevenly used experts, of each sequence alone; 0: none",
     [](RunConfig& c) -> Slot { return &c.model.experts.balance; }}),
    planned({"moe-z-loss-coeff", "", FieldGroup::Model, OnResume::Notice, "",
     "weight of the loss of large router logits; 0: none",
     [](RunConfig& c) -> Slot { return &c.model.experts.z_loss; }}),
};
// clang-format on

}  // namespace tessera::rows
