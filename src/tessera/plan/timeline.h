#pragma once
/// When each node of a program runs: one clock over its regions.

#include <cstdint>
#include <vector>

#include "tessera/passes/partition.h"

namespace tessera {

/// When a node is at work: at one time, but for transfers, which are under way from `first` to
/// `last` while other nodes run.
struct Busy {
  std::int32_t first = 0, last = 0;
};

/// Every node of every region has an odd time of its own; transfers may begin and end at the even
/// ones between. Regions follow each other, then next values are stored that do not lie in their
/// state, each at its time. What the micro-batch loop reads from before it lives until the loop's
/// end; what it accumulates lives from the loop's begin.
struct Timeline {
  explicit Timeline(const std::vector<Region>& regions);

  const Busy& of(int region, NodeId node) const {
    return busy[static_cast<std::size_t>(region)][static_cast<std::size_t>(node)];
  }
  /// The region in which a time lies.
  int region_at(std::int32_t time) const;

  std::vector<std::vector<Busy>> busy;        // [region][node]
  std::vector<std::int32_t> begins, ends;     // of regions: before the first node, behind the last
  std::int32_t loop_begin = 0, loop_end = 0;  // loop_end is the time of no node
  std::int32_t stores = 0, end = 0;
};

}  // namespace tessera
