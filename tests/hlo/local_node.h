#pragma once
/// One node of a local graph on its own, with random operands: what it computes on all ranks by
/// reference kernels in f64.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/passes/program.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera::test {

struct LocalNode {
  std::string title;
  std::shared_ptr<const Graph> graph;  // the node is the last one, behind slots in0, in1, ...
  std::int64_t microbatch = 0;
  std::vector<std::vector<HostTensor>> ins = {};  // by rank, in the types of the operands

  NodeId id() const { return graph->size() - 1; }
  const Node& node() const { return graph->node(id()); }
};

/// A node with the same operands and results, alone. Its operands are not filled. `attrs`: its own,
/// unless others are given.
LocalNode node_alone(const Graph& graph, NodeId id, const std::optional<Attrs>& attrs = {});
/// Its op, attributes but names, types and placements: nodes of one text compute the same.
std::string text_of_node(const LocalNode& node);
/// Random numbers that its op can take: equal on ranks that hold the same part.
void fill_operands(LocalNode& node, std::uint64_t seed);

/// By rank, the results in f64.
std::vector<std::vector<HostTensor>> reference_results(const LocalNode& node);

/// How far results lie from the reference.
struct Distance {
  double worst = 0;   // relative to the largest number among result and operands
  double bound = 0;   // how much is right for these types
  std::string wrong;  // what is not right at all; empty: nothing
};
Distance distance(const LocalNode& node, const std::vector<std::vector<HostTensor>>& got,
                  const std::vector<std::vector<HostTensor>>& want);

}  // namespace tessera::test
