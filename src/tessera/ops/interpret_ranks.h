#pragma once
/// Runs a local graph on all ranks of its mesh in lock-step, with reference kernels: what ranks
/// compute together, without threads and without `comm`.

#include <cstdint>
#include <memory>

#include "tessera/ops/interpret.h"

namespace tessera {

/// Per rank the outputs, in the graph's order. `how.at` gives the coordinate of time. Every node
/// but clear_padding leaves poison beyond the logical extents of a shard: NaN, or integers of nine
/// digits. A reader of padding that nobody cleared gets wrong numbers.
///
/// `inputs`: of each rank, shards in its local shapes. `deleted`: a node that exchanges nothing:
/// a rank's result is what it holds itself, zero where others would have sent.
std::vector<std::vector<HostTensor>> interpret_ranks(const Graph& graph,
                                                     const std::vector<Bindings>& inputs,
                                                     const Interpretation& how = {},
                                                     NodeId deleted = -1);

/// The same node by node, so that the ranks of several graphs can wait for each other.
class RanksInterpreter {
 public:
  /// `graph` and `inputs` outlive it; an input is looked up when its node is computed.
  RanksInterpreter(const Graph& graph, const std::vector<Bindings>& inputs,
                   const Interpretation& how, NodeId deleted = -1);
  ~RanksInterpreter();

  /// The node that step() computes; graph.size() behind the last.
  NodeId next() const;
  void step();
  /// Of a node that has been computed, by rank.
  std::vector<HostTensor> values(ValueId v) const;

 private:
  class Ranks;
  std::unique_ptr<Ranks> ranks_;
};

/// A rank's shard of a whole tensor, as `result` (of a local graph) lies; beyond the extent lies
/// poison, or zeros. And the whole from all shards. Errors: replicas that differ in a bit, unless
/// the first rank's is asked for.
enum class Beyond : std::uint8_t { Poison, Zeros };
HostTensor shard_of(const HostTensor& whole, const Result& result, const Mesh& mesh,
                    const Coordinates& at, Beyond beyond = Beyond::Poison);
/// True where everything beyond the extent is zero.
bool has_zero_padding(const HostTensor& shard, const Result& result, const Mesh& mesh,
                      const Coordinates& at);
enum class Replicas : std::uint8_t { Equal, First };
HostTensor joined(const std::vector<HostTensor>& shards, const Result& result, const Mesh& mesh,
                  Replicas replicas = Replicas::Equal);

}  // namespace tessera
