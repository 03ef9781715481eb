#pragma once
/// Which layers have experts, as a text: "[0]*3+[1]*58".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A text of Megatron-LM's --moe-layer-freq. "2": layers 0, 2, 4, ... have experts; "1": all.
/// "[0]*3+[1]*58", "([0]+[1]*2)*4", "[0,1]": a number for each layer, 1 where it has experts.
class ExpertLayers {
 public:
  /// Errors: Fault::Usage: another text; more numbers than layers can be.
  explicit ExpertLayers(std::string_view text);
  bool has(std::int64_t layer) const;
  /// How many layers a list is of; 0: there is no list.
  std::int64_t listed() const { return std::ssize(list_); }

 private:
  std::int64_t every_ = 1;
  std::vector<bool> list_;
};

/// A short such text, the same one for the same layers.
std::string expert_layers_text(const std::vector<bool>& layers);

}  // namespace tessera
