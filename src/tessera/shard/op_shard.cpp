#include "tessera/shard/op_shard.h"

#include "tessera/base/text.h"

namespace tessera {

std::string to_text(const OpShard& shard) {
  if (shard.in_layouts.empty()) return to_text(shard.ins);
  std::vector<std::string> layouts;
  for (const TensorLayout& layout : shard.in_layouts) layouts.push_back(to_text(layout));
  return text("(", join(layouts), ")");
}

}  // namespace tessera
