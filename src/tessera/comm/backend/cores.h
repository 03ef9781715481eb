#pragma once
/// How ranks share out the cores of their hosts.

#include <sched.h>

#include <span>
#include <string_view>

namespace tessera::backend {

/// Where a rank runs.
struct Seat {
  std::string_view host;
  cpu_set_t cores;  // of that host, on which it may run
};

/// Cores of each rank, where every host's are shared out evenly over the ranks on it: those of the
/// rank that has fewest, because ranks with other numbers of threads would round otherwise. 0 where
/// some host has more ranks than cores.
int cores_per_rank(std::span<const Seat> seats);

}  // namespace tessera::backend
