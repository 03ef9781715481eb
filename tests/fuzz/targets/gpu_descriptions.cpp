/// The descriptions of GPUs in the bytes of a plugin.

#include "tessera/pjrt/c/gpu_descriptions.h"

#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  for (const pjrt::c::GpuDescription& gpu : pjrt::c::find_gpu_descriptions(input)) {
    check(!gpu.name.empty() && gpu.text.find('\0') == std::string::npos, "a device without a name");
    check(gpu.text.find("\"" + gpu.name + "\"") != std::string::npos, "a name from elsewhere");
    check(input.find(gpu.text) != input.npos, "a description that is not there");
  }
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
