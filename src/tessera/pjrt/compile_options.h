#pragma once
/// What a compiler is told beside the module.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/pjrt/plugin.h"

namespace tessera::pjrt {

struct CompileOptions {
  /// Copies of the program that run side by side; as the module's mhlo.num_replicas says.
  int num_replicas = 1;
  int num_partitions = 1;
  /// Ids of devices: [replica][partition]. Empty: the plugin's first ones, in order.
  std::vector<std::vector<std::int64_t>> device_assignment = {};
  /// XLA's flags for this program alone, such as {"xla_gpu_deterministic_ops", true}; no lists. A
  /// plugin refuses names that it does not know.
  NamedValues flags = {};
};

/// The flags by which a CUDA plugin finds CUDA's own compilers, where `./dev accelerator cuda13
/// --runtime` has put them beside it; none for other plugins.
NamedValues flags_for(const Plugin& plugin);

/// The flags by which XLA for GPUs ("cuda", "rocm") keeps fewer values at a time, and computes less
/// while devices send each other values; none for other platforms.
NamedValues leaner_flags(std::string_view platform);

/// As XLA's CompileOptionsProto, in protobuf's wire format. Errors: Fault::Internal: counts below 1,
/// an assignment of another size, a list as flag.
std::string to_bytes(const CompileOptions& options);

}  // namespace tessera::pjrt
