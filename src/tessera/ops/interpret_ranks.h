#pragma once
/// Runs a local graph on all ranks of its mesh in lock-step, with reference kernels: what ranks
/// compute together, without threads and without `comm`.

#include "tessera/ops/interpret.h"

namespace tessera {

/// Per rank the outputs, in the graph's order. `how.at` gives the coordinate of time; what lies
/// beyond the logical extents of a shard is NaN after every node (-999 where integers are), so that
/// whoever reads it is found out.
///
/// `inputs`: of each rank, shards in its local shapes.
std::vector<std::vector<HostTensor>> interpret_ranks(const Graph& graph,
                                                     const std::vector<Bindings>& inputs,
                                                     const Interpretation& how = {});

/// A rank's shard of a whole tensor, as `result` (of a local graph) lies; beyond the extent NaN or
/// -999. And the whole from all shards. Errors: replicas that differ in a bit.
HostTensor shard_of(const HostTensor& whole, const Result& result, const Mesh& mesh,
                    const Coordinates& at);
HostTensor joined(const std::vector<HostTensor>& shards, const Result& result, const Mesh& mesh);

}  // namespace tessera
