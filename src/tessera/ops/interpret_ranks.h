#pragma once
/// Runs a local graph on all ranks of its mesh in lock-step, with reference kernels: what ranks
/// compute together, without threads and without `comm`.

#include <cstdint>

#include "tessera/ops/interpret.h"

namespace tessera {

/// Per rank the outputs, in the graph's order. `how.at` gives the coordinate of time; what lies
/// beyond the logical extents of a shard is NaN after every node (-999 where integers are), so that
/// whoever reads it is found out.
///
/// `inputs`: of each rank, shards in its local shapes. `deleted`: a node that exchanges nothing:
/// a rank's result is what it holds itself, zero where others would have sent.
std::vector<std::vector<HostTensor>> interpret_ranks(const Graph& graph,
                                                     const std::vector<Bindings>& inputs,
                                                     const Interpretation& how = {},
                                                     NodeId deleted = -1);

/// A rank's shard of a whole tensor, as `result` (of a local graph) lies; beyond the extent NaN or
/// -999. And the whole from all shards. Errors: replicas that differ in a bit, unless the first
/// rank's is asked for.
HostTensor shard_of(const HostTensor& whole, const Result& result, const Mesh& mesh,
                    const Coordinates& at);
enum class Replicas : std::uint8_t { Equal, First };
HostTensor joined(const std::vector<HostTensor>& shards, const Result& result, const Mesh& mesh,
                  Replicas replicas = Replicas::Equal);

}  // namespace tessera
