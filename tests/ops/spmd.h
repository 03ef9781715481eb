#pragma once
/// A graph on simulated ranks, node by node, with no communication but what its nodes leave to be
/// finished: operands may be sliced, partial results are reduced at once. What else a node would
/// need is counted.

#include "ops/sharded.h"

namespace tessera::test {

/// A value that ranks hold together: the whole that their shards make, and how they lie.
struct Held {
  HostTensor whole;
  Sharding sharding;  // nothing partial
};

/// True where a value that lies at `from` is cut to `to` without any communication.
bool is_slice(const Sharding& from, const Sharding& to);

struct Spmd {
  Mesh mesh;
  double garbage = -999;
  int nodes = 0;  // run on ranks, those of expansions included
  /// Operands that did not lie as their node needs them, beyond slicing: each would be moved.
  std::vector<std::string> moved = {};

  /// Runs every node whose results are not known yet. Its factors are sharded as its operands bring
  /// it.
  void run_all(const Graph& graph, std::map<ValueId, Held>& known);
  /// The results of a node under this assignment, through its expansion where that is needed.
  std::vector<Held> run(const Graph& graph, NodeId id, const std::vector<Held>& ins,
                        const Assignment& assignment);

 private:
  std::vector<Held> run_expansion(const Graph& graph, NodeId id, const std::vector<Held>& ins);
};

}  // namespace tessera::test
