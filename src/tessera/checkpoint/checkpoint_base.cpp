/// Tensors that a checkpoint leaves where they are.

#include <algorithm>
#include <utility>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_manifest.h"

namespace tessera {

void Checkpoint::stand_on(std::unique_ptr<const BaseTensors> base) {
  base_ = std::move(base);
  for (const TensorEntry& entry : base_->tensors()) {
    if (held(entry.name) == nullptr) entries_.push_back(entry);
  }
  std::ranges::sort(entries_, {}, &TensorEntry::name);
}

const std::string& Checkpoint::base_path() const {
  static const std::string none;
  return base_ == nullptr ? none : base_->path();
}

const ManifestTensor* Checkpoint::held(std::string_view name) const {
  const std::vector<ManifestTensor>& all = manifest_->tensors;
  const auto at = std::ranges::lower_bound(
      all, name, {}, [](const ManifestTensor& t) { return std::string_view(t.entry.name); });
  return at != all.end() && at->entry.name == name ? &*at : nullptr;
}

}  // namespace tessera
