#include "tessera/train/within_cap.h"

#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/memory_cap.h"
#include "tessera/train/host_pool.h"

namespace tessera {

std::int64_t capped_bytes(const RunConfig& config, const RunRequirements& all) {
  return host_pool_of(config) == HostPool::SameMemory ? all.both_bytes : all.peak_bytes;
}

void require_within_cap(const RunConfig& config, const RunRequirements& all) {
  const std::optional<std::int64_t> cap = parse_memory_cap(config.memory_cap);
  const std::int64_t capped = capped_bytes(config, all);
  require(!cap || capped <= *cap, "the plan takes ", bytes_text(capped), " (", capped,
          " bytes) of a device, and memory-cap is ", config.memory_cap,
          "; its ranks may have other processors or thread counts than the plan assumed: give "
          "--threads and --max-isa, or raise the cap");
}

}  // namespace tessera
