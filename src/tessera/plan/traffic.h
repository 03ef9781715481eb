#pragma once
/// What ranks send each other, told by the plan before anything runs.

#include <map>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// The calls of one run of a program that are alike: of one region and block, of one kind along the
/// same axes, sending as much.
struct Flow {
  RegionKind region = RegionKind::Forward;
  std::string block;  // "layers.3"; empty outside of blocks
  Kind kind = Kind::AllReduce;
  std::string axes;        // "dp", "cp.tp": the group, as Executor::sent() has it
  std::int64_t bytes = 0;  // that one rank sends in one call: bytes_sent()
  std::int64_t calls = 0;  // per run, all micro-batches together
  std::int64_t total() const;
  friend auto operator<=>(const Flow&, const Flow&) = default;
};

/// Those of a rank, in order: by region, then block, kind, axes and bytes.
std::vector<Flow> flows_of(const ProgramPlan& program, const Mesh& mesh);

/// Blocks that send alike, with the flows of each of them; what lies in no block is a class by
/// itself, without a name. In order of the first block.
struct FlowClass {
  std::vector<std::string> blocks;
  std::vector<Flow> flows;  // of one block; their `block` is empty
  friend bool operator==(const FlowClass&, const FlowClass&) = default;
};
std::vector<FlowClass> by_class(const std::vector<Flow>& flows);

/// By axes, what communicators count in one run of the program: calls and bytes by kind. With
/// `runs`, in as many. Axes along which nothing is sent are not listed.
std::map<std::string, Counts> planned_counts(const ProgramPlan& program, const Mesh& mesh,
                                             std::int64_t runs = 1);

/// Bytes of all kinds.
std::int64_t bytes_of(const Counts& counts);

}  // namespace tessera
