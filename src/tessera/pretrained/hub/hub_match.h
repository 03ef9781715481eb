#pragma once
/// Which tensors of a folder make which parameters of a model.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera {

/// A tensor of the files, and which rows of a parameter it has.
struct HubSource {
  std::string name;
  HubRows rows = HubRows::All;
  bool transposed = false;
  std::int64_t expert = 0;  // of HubRows::Expert
};

struct HubMatch {
  /// By our name: the folder's tensors, and the shape that they make.
  std::map<std::string, std::vector<HubSource>, std::less<>> sources;
  std::map<std::string, Shape, std::less<>> parameters;
};

/// Finds all of them. The model is no longer tied where the folder has a head that differs from the
/// table; that, and tensors without a use, are added to its notices. `or_else`: what a user may do
/// where tensors are missing, beside downloading them again (OpenPretrained).
///
/// Errors: Fault::Checkpoint: tensors that are missing, all of them in one message, but for heads
/// of which the folder has nothing and is not said to have any; names of one tensor whose values
/// differ, where the family cannot have both; shapes that are not those of the model.
HubMatch match_tensors(const HubFamily& family, const HubWeights& weights, const HubConfig& from,
                       const std::string& folder, std::string_view or_else, HubModel& model);

/// Every parameter that both have, but those of the block `anew`, has the shape that `model` gives
/// it. Errors: Fault::Checkpoint: one has not: the folder's tensor, both shapes, keys of
/// config.json.
void check_shapes(const HubMatch& match, const HubFamily& family, const HubWeights& weights,
                  const HubConfig& from, const ModelConfig& model, std::string_view anew = {});

}  // namespace tessera
