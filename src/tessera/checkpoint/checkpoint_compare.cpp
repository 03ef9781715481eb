#include <map>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"

namespace tessera {

namespace {

constexpr std::size_t kMaxListed = 20;

using Types = std::map<std::string_view, const TensorType*>;
Types types_of(std::span<const TensorEntry> tensors);
/// "missing (2): a f32[4], b f32[2]"
std::string listed(const char* what, const std::vector<std::string>& items);

}  // namespace

std::string tensor_mismatch(std::span<const TensorEntry> expected,
                            std::span<const TensorEntry> found) {
  const Types wanted = types_of(expected), there = types_of(found);
  std::vector<std::string> missing, unexpected, misshaped;
  for (const auto& [name, type] : wanted) {
    const auto at = there.find(name);
    if (at == there.end()) {
      missing.push_back(text(name, " ", *type));
    } else if (!(*at->second == *type)) {
      misshaped.push_back(text(name, " is ", *at->second, " but the model wants ", *type));
    }
  }
  for (const auto& [name, type] : there) {
    if (!wanted.contains(name)) unexpected.push_back(text(name, " ", *type));
  }
  if (missing.empty() && unexpected.empty() && misshaped.empty()) return "";
  return text("its ", found.size(), " tensors are not the ", expected.size(),
              " of the model; use the configuration that it was saved with",
              listed("missing", missing), listed("unexpected", unexpected),
              listed("of another type or shape", misshaped));
}

namespace {

Types types_of(std::span<const TensorEntry> tensors) {
  Types out;
  for (const TensorEntry& tensor : tensors) out.emplace(tensor.name, &tensor.type);
  return out;
}

std::string listed(const char* what, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = text("\n    ", what, " (", items.size(), "): ");
  const std::size_t count = std::min(items.size(), kMaxListed);
  for (std::size_t i = 0; i < count; ++i) out += text(i == 0 ? "" : ", ", items[i]);
  return count == items.size() ? out : out + ", ...";
}

}  // namespace

}  // namespace tessera
