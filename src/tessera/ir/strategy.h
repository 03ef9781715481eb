#pragma once
/// The strategy: the user's or the search's decisions on where values lie, as a plain value.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/sharding.h"

namespace tessera {

/// The axis of time: micro-batches.
inline constexpr std::string_view kMicrobatchAxis = "mb";

/// A decision on every value whose path matches: block and name, "layers.3.residual", or the path
/// of a state, "layers.3.mlp.up.weight". Axes that the mesh lacks are dropped.
struct Pin {
  std::string values;  // '*' stands for any characters
  Sharding sharding;
  friend bool operator==(const Pin&, const Pin&) = default;
};

/// A decision on the op with this path (op_paths): where it reads each operand, and where its
/// results are then kept. Dims that it shards along no axis are whole.
struct OpPin {
  std::string op;
  std::vector<Sharding> ins;
  std::vector<Sharding> outs = {};  // none: where the op leaves them
  friend bool operator==(const OpPin&, const OpPin&) = default;
};

struct Strategy {
  Mesh mesh;
  /// Per dim of every batch input the axes that shard it, major first; those that the mesh lacks
  /// are dropped.
  std::vector<std::vector<std::string>> batch = {{std::string(kMicrobatchAxis)}};
  /// Where several axes shard one dim, those named first are major; axes that are not named follow
  /// in the order of the mesh, time last.
  std::vector<std::string> major = {};
  /// Of states, as forward and backward read them (their `use`), and of named values. Of several
  /// that match, the last one holds.
  std::vector<Pin> pins = {};
  std::vector<OpPin> ops = {};
  /// Axes that shard states and gradients beyond their use, each on a dim that is free of other
  /// axes where there is one: moments and the gradients that update them; the sums of gradients
  /// that micro-batches add to; parameters as they are stored.
  std::vector<std::string> shard_moments = {}, shard_gradients = {}, shard_parameters = {};
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// True where `path` is what `pattern` says: '*' stands for any characters.
bool matches(std::string_view pattern, std::string_view path);

/// One process, `microbatches` micro-batches.
inline Strategy one_device(std::int64_t microbatches) {
  return {Mesh({{std::string(kMicrobatchAxis), microbatches, Level::Time}})};
}

}  // namespace tessera
