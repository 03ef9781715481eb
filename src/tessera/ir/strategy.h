#pragma once
/// The strategy: the user's or the search's decisions on where values lie, as a plain value.

#include <string>
#include <vector>

#include "tessera/tensor/sharding.h"

namespace tessera {

/// The axis of time: micro-batches.
inline constexpr std::string_view kMicrobatchAxis = "mb";

struct Strategy {
  Mesh mesh;
  /// The axes that shard dim 0 of every batch input, major first; those that the mesh lacks are
  /// dropped.
  std::vector<std::string> batch_axes = {std::string(kMicrobatchAxis)};
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// One process, `microbatches` micro-batches.
inline Strategy one_device(std::int64_t microbatches) {
  return {Mesh({{std::string(kMicrobatchAxis), microbatches, Level::Time}}),
          {std::string(kMicrobatchAxis)}};
}

}  // namespace tessera
