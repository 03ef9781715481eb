#pragma once
/// Devices that are not here, for which a plugin compiles all the same.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/pjrt/compile_options.h"
#include "tessera/pjrt/compiled.h"

namespace tessera::pjrt {

/// A device that may be absent.
struct DescribedDevice {
  int id = 0;
  int process = 0;
  std::string kind;  // "NVIDIA H100 80GB HBM3"
  NamedValues attributes;
};

class Topology {
 public:
  /// `name` and options are the plugin's own. Errors: Fault::Usage: what it does not know.
  Topology(const Plugin& plugin, const std::string& name, const NamedValues& options,
           std::optional<std::int64_t> device_bytes = {});

  std::string platform_name() const;
  std::string platform_version() const;
  std::vector<DescribedDevice> devices() const;
  /// What each device has; nothing where it is not described.
  std::optional<std::int64_t> device_bytes() const { return device_bytes_; }

  /// Compiles as compile() of a client does; nothing is loaded.
  Compiled compile(std::string_view mlir, const CompileOptions& options = {}) const;

 private:
  Handle<c::TopologyDescription> topology_;
  std::optional<std::int64_t> device_bytes_;
};

/// `hosts` machines with `devices` GPUs each. `gpu` is one of gpu_names(plugin), or a part that only
/// one of them has, such as "H200". Errors: Fault::Usage: no such GPU, with those that there are.
Topology gpu_topology(const Plugin& plugin, std::string_view gpu, int hosts, int devices);

/// The GPUs of its platform that XLA's plugin for CUDA or ROCm has descriptions of; none for others.
/// Reads the plugin's file.
std::vector<std::string> gpu_names(const Plugin& plugin);

}  // namespace tessera::pjrt
