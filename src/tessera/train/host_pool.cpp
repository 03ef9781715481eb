#include "tessera/train/host_pool.h"

namespace tessera {

HostPool host_pool_of(const RunConfig& config) {
  if (config.remote_device == kRemoteFile) return HostPool::File;
  const std::string plugin = plugin_of(config);
  if (!plugin.empty() && plugin != "cpu") return HostPool::Apart;
  return config.parallel.machine.kernels == KernelSource::Cpu ? HostPool::SameMemory
                                                              : HostPool::Apart;
}

HostUse host_use(const RunConfig& config, std::int64_t host_bytes) {
  return host_pool_of(config) == HostPool::File ? HostUse{0, host_bytes} : HostUse{host_bytes, 0};
}

std::int64_t capped_bytes(const RunConfig& config, const Plan& plan) {
  const bool same = host_pool_of(config) == HostPool::SameMemory;
  return plan.peak_bytes() + (same ? plan.host_bytes() : 0);
}

}  // namespace tessera
