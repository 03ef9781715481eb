#pragma once
/// The descriptions of GPUs that XLA's plugins for them have inside, as protobuf's text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::pjrt::c {

struct GpuDescription {
  std::string name;      // "NVIDIA H100 80GB HBM3"
  std::string platform;  // "CUDA", "ROCM", "SYCL"
  std::string text;      // a GpuTargetConfigProto
  std::optional<std::int64_t> memory_bytes = {};
};

/// Those in the bytes of a plugin, ordered by name: texts between NULs that describe a device and end
/// with its name.
std::vector<GpuDescription> find_gpu_descriptions(std::string_view bytes);
/// Those in a plugin's file. Errors: Fault::Resource: it cannot be read.
std::vector<GpuDescription> gpu_descriptions(const std::string& file);

}  // namespace tessera::pjrt::c
