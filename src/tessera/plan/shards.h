#pragma once
/// The shards and groups of one rank: from placements to offsets and members. For lower.cpp.

#include "tessera/plan/plan.h"

namespace tessera {

class RankShards {
 public:
  /// `mesh`: of one stage of the pipeline. `rank`: of the world.
  RankShards(const Mesh& mesh, int rank)
      : mesh_(mesh),
        in_stage_(static_cast<int>(rank % mesh.ranks())),
        before_(rank - in_stage_),
        at_(coordinates_of(mesh, in_stage_)) {}

  /// The part of a value of a local graph.
  ShardInfo info(const Result& result) const;
  /// Along the attribute `axes` of ops that act along one; 0 for others.
  std::int64_t coordinate(const OpCall& call) const;
  /// A transfer, as a call without places.
  Call transfer(const Graph& graph, NodeId id) const;
  /// The message that this rank sends to, or receives from, the rank of another stage that has its
  /// coordinates.
  Call message(CollectiveKind kind, const Program::Message& message, const Result& what,
               const Name& block) const;

 private:
  Group group(const std::vector<std::string>& axes) const;
  int sender(const Result& from, const Result& to, const std::vector<std::string>& axes) const;
  int receiver(const Result& from, const Result& to, const std::vector<std::string>& axes) const;

  Mesh mesh_;
  int in_stage_;  // the rank's number there
  int before_;    // ranks of earlier stages
  Coordinates at_;
};

}  // namespace tessera
