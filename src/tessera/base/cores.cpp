#include "tessera/base/cores.h"

#include <unistd.h>

#include <algorithm>

namespace tessera {

cpu_set_t usable_cores() {
  cpu_set_t out;
  CPU_ZERO(&out);
  if (sched_getaffinity(0, sizeof(out), &out) == 0) return out;
  // The system's own set is longer than cpu_set_t.
  const long all = std::clamp<long>(sysconf(_SC_NPROCESSORS_ONLN), 1, CPU_SETSIZE);
  for (long core = 0; core < all; ++core) CPU_SET(static_cast<unsigned>(core), &out);
  return out;
}

int num_usable_cores() {
  const cpu_set_t cores = usable_cores();
  return std::max(1, CPU_COUNT(&cores));
}

}  // namespace tessera
