#pragma once
/// What one rank holds and with whom it acts: from placements to offsets and groups. For lower.cpp.

#include "tessera/plan/plan.h"

namespace tessera {

class RankShards {
 public:
  RankShards(const Mesh& mesh, int rank) : mesh_(mesh), at_(coordinates_of(mesh, rank)) {}

  /// The part of a value of a local graph.
  ShardInfo info(const Result& result) const;
  /// Along the attribute `axes` of ops that act along one; 0 for others.
  std::int64_t coordinate(const OpCall& call) const;
  /// A node whose op exchanges, as a call without places.
  Call transfer(const Graph& graph, NodeId id) const;

 private:
  int sender(const Result& from, const Result& to, const std::vector<std::string>& axes) const;
  int receiver(const Result& from, const Result& to, const std::vector<std::string>& axes) const;

  Mesh mesh_;
  Coordinates at_;
};

}  // namespace tessera
