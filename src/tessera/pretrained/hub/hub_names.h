#pragma once
/// By which names a folder has the tensors of a family's table.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera {

/// Names of a folder's tensors without what programs put before and between them: module. and
/// _orig_mod. of wrappers, other spellings, and a prefix that the whole model has (language_model.).
class HubNames {
 public:
  /// `tensors`: the table. Errors: Fault::Checkpoint: no tensor is of the family; the model is
  /// there several times, under several prefixes.
  HubNames(const HubFamily& family, const std::vector<HubTensor>& tensors,
           const HubWeights& weights, const std::string& folder);

  /// The tensor that the table calls `theirs`, as the folder has it; empty: it lacks it.
  std::string find(std::string_view theirs) const;
  /// What the table calls `theirs`, by the prefix and the spellings that the folder has.
  std::string spelt(std::string_view theirs) const;
  /// Without prefixes: as `unread` of a family has it.
  std::string bare(const std::string& name) const;

 private:
  std::string plain(const std::string& name) const;  // without wrappers, spelt as in the table
  std::string_view without_prefix(std::string_view theirs) const;
  void find_prefix(const std::vector<HubTensor>& tensors, const std::string& folder);

  const HubFamily& family_;
  std::map<std::string, std::string, std::less<>> original_;  // by plain name
  std::vector<HubSpelling> spellings_;                        // that it has
  std::string prefix_;  // of the model without its head: "bert.", "module.bert.", ""
};

}  // namespace tessera
