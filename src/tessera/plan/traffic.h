#pragma once
/// The bytes that ranks will send each other, computed from a plan.

#include <map>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// The calls of one run of a program that are equal in region, block, kind, axes and bytes, and
/// their number.
struct Flow {
  RegionKind region = RegionKind::Forward;
  std::string block;  // "layers.3"; empty outside of blocks
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::string axes;        // "dp", "cp.tp": the group, as Executor::sent() has it
  std::int64_t bytes = 0;  // that one rank sends in one call: bytes_sent()
  std::int64_t calls = 0;  // per run, all micro-batches together
  std::int64_t total() const;
  friend auto operator<=>(const Flow&, const Flow&) = default;
};

/// The flows of one rank, ordered by region, block, kind, axes and bytes.
std::vector<Flow> flows_of(const ProgramPlan& program);

/// Blocks with equal flows, and the flows of one of them. Calls outside of blocks are a class of
/// their own, with an empty name. Classes are in the order of their first block.
struct FlowClass {
  std::vector<std::string> blocks;
  std::vector<Flow> flows;  // of one block; their `block` is empty
  friend bool operator==(const FlowClass&, const FlowClass&) = default;
};
std::vector<FlowClass> by_class(const std::vector<Flow>& flows);

/// By axes, the calls and bytes of each kind that communicators will count in `runs` runs of the
/// program; of chosen rows the most. Axes along which nothing is sent are not listed.
std::map<std::string, Counts> planned_counts(const ProgramPlan& program, std::int64_t runs = 1);

/// Bytes of all kinds.
std::int64_t bytes_of(const Counts& counts);

}  // namespace tessera
