#pragma once
/// The room `shard`: strategies of single ops, as MindSpore's users write them, for the compiler.
/// For: shard(), parallel modes, collectives by hand.
/// Not for: the strategies of our families (models/parallel.h).
/// Rejected: strategies in the graph. It says what is computed and nothing of where; ops are named
/// by path, and one that is renamed loses its strategy with an error. A node that holds a graph for
/// one rank: local() is ops over a leading dim of ranks, so its gradients need no rule of their
/// own.
///
/// MindSpore's parallel modes, as one strategy.

#include <optional>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"
#include "tessera/search/search.h"
#include "tessera/shard/op_shard.h"

namespace tessera {

enum class ParallelMode {
  StandAlone,        // one device
  DataParallel,      // parameters are whole on every rank, the batch is cut
  SemiAutoParallel,  // ops lie as their strategies say; those without one are cut along the batch
  AutoParallel,      // ops lie as their strategies say; the rest is found
  HybridParallel,    // the user's collectives, inside of local() (shard/local.h)
};
/// How each batch input is cut: along its rows by all ranks, not at all, or as said for each input.
struct DatasetStrategy {
  enum class Kind { DataParallel, FullBatch, Splits } kind = Kind::DataParallel;
  Splits splits = {};  // Kind::Splits: in order of declaration; ranks that are left over repeat
};

/// What MindSpore's users set on a context, for one step: no part of it is global.
///
/// How the gradient of a parameter relates to that of one device, which computes the loss over the
/// whole batch. `replicas`: ranks that hold the same slice of the parameter.
///
///   mode                              gradients_mean   loss_repeated_mean   factor
///   stand_alone, hybrid_parallel      any              any                  1
///   data_parallel                     false            any                  devices
///   data_parallel                     true             any                  1
///   semi_auto_, auto_parallel         false            true                 1
///   semi_auto_, auto_parallel         true             true                 1 / replicas
///   semi_auto_, auto_parallel         false            false                devices
///   semi_auto_, auto_parallel         true             false                devices / replicas
///
/// dataset_strategy changes none of them.
///
/// If each rank feeds its own rows (dataset_strategy DataParallel), each rank also gets its own
/// part of the results of the forward pass, as they are computed. All other outputs are whole on
/// every rank.
struct AutoParallel {
  ParallelMode mode = ParallelMode::StandAlone;
  /// Of ParallelMode::AutoParallel: how ops without a strategy get one. The first two search on a
  /// mesh of at most three axes, and finer where strategies of the user need that.
  SearchMode search_mode = SearchMode::ShardingPropagation;
  Machine machine = {};        // whose prices the searches go by
  double memory_cap = kNever;  // bytes on a device, of what a search can tell: SearchReport::bytes
  std::int64_t device_num = 1;
  std::int64_t micro_batches = 1;
  DatasetStrategy dataset_strategy = {};
  bool gradients_mean = false;
  bool loss_repeated_mean = true;
  /// Moments and stored parameters are cut further, along ranks that hold the same slice.
  bool enable_parallel_optimizer = false;
  /// Of single ops, by path; shards_of() has those of shard() (shard/shard.h). Of several that
  /// match, the last one holds.
  std::vector<OpShard> shards = {};
};

/// A step and how it is spread: what compile() takes.
struct ParallelStep {
  Graph graph;  // gradients times their factors
  Strategy strategy;
  std::optional<SearchReport> search = {};  // of a search mode that searches
};

/// Errors: options that do not fit together; strategies that match no op; all that is wrong with
/// strategies (shard/op_strategy.h), of all ops at once; device matrices without a common
/// refinement; axes of layouts that two tensors order in two ways; a search that finds nothing
/// within the memory cap.
ParallelStep parallelize(const Graph& step, const AutoParallel& options);

}  // namespace tessera
