#pragma once
/// The strategy: the mesh, and the decisions from which `propagate` derives all placements.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/gather_scope.h"
#include "tessera/ir/key_exchange.h"
#include "tessera/ir/recompute.h"
#include "tessera/schedule/schedule.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

/// The axis of time: its coordinates are the micro-batches of a step.
inline constexpr std::string_view kMicrobatchAxis = "mb";
/// What stages are called beside axes, and messages between them are counted under. No mesh has it:
/// stages are copies of the mesh.
inline constexpr std::string_view kPipelineAxis = "pp";

/// Fixes the sharding of all values whose path matches: block and name, "layers.3.residual", or the
/// path of a state, "layers.3.mlp.up.weight". Axes that the mesh lacks are ignored.
struct Pin {
  std::string values;  // '*' stands for any characters
  Sharding sharding;
  bool optional = false;  // may match nothing; else that is an error
  friend bool operator==(const Pin&, const Pin&) = default;
};

/// Fixes the sharding of one op, by its path (op_paths): of each operand as the op reads it, and of
/// its results. Dims without an axis are not split.
struct OpPin {
  std::string op;
  std::vector<Sharding> ins;
  std::vector<Sharding> outs = {};  // empty: as they follow from the operands
  friend bool operator==(const OpPin&, const OpPin&) = default;
};

/// Says which chunk of a pipeline computes the blocks whose path matches: "layers.3", "encoder.*".
struct ChunkPin {
  std::string blocks;  // '*' stands for any characters
  int chunk = 0;
  friend bool operator==(const ChunkPin&, const ChunkPin&) = default;
};

/// How blocks are spread over a pipeline. Its stages are copies of the mesh, one after another:
/// rank r of stage s is rank s * (ranks of the mesh) + r of the world. So placements know nothing
/// of stages, and stages nothing of placements.
struct PipelineStrategy {
  int stages = 1;
  int chunks = 1;  // per stage
  std::string schedule{kUsualSchedule};
  std::vector<ChunkPin> pins = {};  // if several match, the last one holds

  int total() const { return stages * chunks; }
  friend bool operator==(const PipelineStrategy&, const PipelineStrategy&) = default;
};

/// Says what backward computes again in the blocks whose path matches. Blocks of which nothing is
/// said do as the model says.
struct RecomputePin {
  std::string blocks;  // '*' stands for any characters
  Recompute what = Recompute::Full;
  friend bool operator==(const RecomputePin&, const RecomputePin&) = default;
};

/// Says in which group the gradients of parameters are whose path matches. Those of one group are
/// summed over ranks together, however large they are; those of group 0 each alone.
struct BucketPin {
  std::string parameters;  // '*' stands for any characters
  int group = 0;
  friend bool operator==(const BucketPin&, const BucketPin&) = default;
};

/// Which gradients ranks sum in one all_reduce.
struct BucketStrategy {
  std::int64_t bytes = 0;            // together at most, of those that no pin names; 0: each alone
  std::vector<BucketPin> pins = {};  // if several match, the last one holds
  bool any() const { return bytes > 0 || !pins.empty(); }
  friend bool operator==(const BucketStrategy&, const BucketStrategy&) = default;
};

/// What lies in the memory of the host, and is copied to the device where that needs it.
struct OffloadStrategy {
  bool moments = false, gradients = false, parameters = false;
  bool activations = false;  // what forward computes and backward reads
  bool any() const { return moments || gradients || parameters || activations; }
  friend bool operator==(const OffloadStrategy&, const OffloadStrategy&) = default;
};

struct Strategy {
  Mesh mesh;  // of one stage
  /// Of every batch input: per dim the axes that split it, in order. Axes that the mesh lacks are
  /// ignored.
  std::vector<std::vector<std::string>> batch = {{std::string(kMicrobatchAxis)}};
  /// The order of axes that split one dim: those named first split first. Axes that are not named
  /// follow in the order of the mesh, the axis of time last.
  std::vector<std::string> major = {};
  /// Shardings of states as forward and backward read them (their `use`), and of named values. If
  /// several match, the last one holds.
  std::vector<Pin> pins = {};
  std::vector<OpPin> ops = {};
  /// ZeRO: axes that shard states further where they are stored (their `home`), on a dim that no
  /// other axis splits if there is one. Moments, with the gradients that update them (ZeRO-1);
  /// accumulated gradients (ZeRO-2); stored parameters (ZeRO-3).
  std::vector<std::string> shard_moments = {}, shard_gradients = {}, shard_parameters = {};
  /// What these axes do not shard: a state of which a rank would have fewer bytes than the
  /// threshold, and those of a parameter whose path matches ('*' stands for any characters).
  std::int64_t shard_threshold = 0;
  std::vector<std::string> unsharded = {};
  /// Outputs by name that leave the step as they are sharded where they are computed: each rank has
  /// its own part of them. All others are whole on every rank.
  std::vector<std::string> cut_outputs = {};
  PipelineStrategy pipeline = {};
  std::vector<RecomputePin> recompute = {};  // if several match, the last one holds
  OffloadStrategy offload = {};
  BucketStrategy buckets = {};
  /// Of parameters that lie otherwise than forward and backward read them.
  GatherScope gather = GatherScope::Block;
  KeyExchange keys = KeyExchange::Ring;
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// True if `path` matches `pattern`, in which '*' stands for any characters.
bool matches(std::string_view pattern, std::string_view path);
/// What to say of a pattern that matches none of `paths`: "nearest are ...", or some that are
/// there.
std::string near_paths(const std::string& pattern, const std::vector<std::string>& paths);

/// One rank that computes each step in `microbatches` micro-batches.
inline Strategy one_device(std::int64_t microbatches) {
  return {Mesh({{std::string(kMicrobatchAxis), microbatches, Level::Time}})};
}

}  // namespace tessera
