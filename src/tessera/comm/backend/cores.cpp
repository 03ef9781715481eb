#include "tessera/comm/backend/cores.h"

#include <algorithm>

namespace tessera::backend {

int cores_per_rank(std::span<const Seat> seats) {
  int fewest = CPU_SETSIZE;
  for (const Seat& seat : seats) {
    cpu_set_t cores = seat.cores;
    int ranks = 0;
    for (const Seat& other : seats) {
      if (other.host != seat.host) continue;
      ++ranks;
      CPU_OR(&cores, &cores, &other.cores);
    }
    // A launcher may have given each rank cores of its own, and not all of them as many.
    fewest = std::min({fewest, CPU_COUNT(&seat.cores), CPU_COUNT(&cores) / ranks});
  }
  return fewest;
}

}  // namespace tessera::backend
