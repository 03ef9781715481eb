#include "tessera/tensor/splits.h"

#include "tessera/base/text.h"

namespace tessera {

std::string to_text(const Splits& splits) {
  std::vector<std::string> tensors;
  for (const std::vector<std::int64_t>& dims : splits) {
    std::vector<std::string> parts;
    for (const std::int64_t n : dims) parts.push_back(text(n));
    tensors.push_back(text("(", join(parts), ")"));
  }
  return text("(", join(tensors), ")");
}

}  // namespace tessera
