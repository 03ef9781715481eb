#pragma once
/// The timeline: when each node of a program runs, as numbers from which lifetimes are read.

#include <cstdint>
#include <vector>

#include "tessera/passes/program.h"

namespace tessera {

/// The times at which a node is at work. `first` and `last` are equal, except for transfers, which
/// go on while other nodes run.
struct Busy {
  std::int32_t first = 0, last = 0;
};

/// Every node has an odd time of its own, region after region. Transfers may begin and end at the
/// even times in between. After the regions come the copies of next values into their states, if
/// they were not computed there. A value that the micro-batch loop reads from outside is alive
/// until the end of the loop; an accumulator is alive from its begin.
struct Timeline {
  explicit Timeline(const Program& program);

  const Busy& of(int region, NodeId node) const {
    return busy[static_cast<std::size_t>(region)][static_cast<std::size_t>(node)];
  }
  /// The region of a time.
  int region_at(std::int32_t time) const;

  std::vector<std::vector<Busy>> busy;        // [region][node]
  std::vector<std::int32_t> begins, ends;     // of regions: before the first node, behind the last
  std::int32_t loop_begin = 0, loop_end = 0;  // loop_end is the time of no node
  std::int32_t stores = 0, end = 0;
};

}  // namespace tessera
