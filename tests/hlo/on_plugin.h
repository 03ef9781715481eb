#pragma once
/// Modules on XLA's plugin for CPUs, where it was brought.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "repo_file.h"
#include "tessera/base/index.h"
#include "tessera/hlo/modules.h"
#include "tessera/pjrt/executable.h"
#include "tessera/pjrt/plugin.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera::test {

/// The plugin's eight devices; null where it is not there. Never destroyed: at the end of the process
/// what the plugin needs for that may be gone.
inline const pjrt::Client* cpu_plugin() {
  static const pjrt::Client* const kClient = []() -> const pjrt::Client* {
    try {
      const std::string file = pjrt::find_plugin("cpu", repo_file("build/plugins"));
      const pjrt::NamedValues options = {{"cpu_device_count", std::int64_t{8}}};
      return new pjrt::Client(pjrt::load_plugin(file), options);
    } catch (const Error&) {
      return nullptr;
    }
  }();
  return kClient;
}

inline constexpr const char* kNoPlugin =
    "no plugin cpu in build/plugins: ./dev accelerator cpu brings it";

/// A module, compiled for its replicas: devices from `first` on.
class OnPlugin {
 public:
  explicit OnPlugin(hlo::Module of, std::int64_t first = 0)
      : module(std::move(of)), first_(first), executable_(compiled(module, first)) {}

  const hlo::Module module;

  pjrt::Buffer put(const HostTensor& tensor, std::int64_t rank) const {
    return pjrt::to_device(*cpu_plugin(), tensor.bytes(), tensor.dtype(), tensor.shape(),
                           cpu_plugin()->local_devices()[at(first_ + rank)]);
  }
  /// [rank][result]
  pjrt::Results run(const pjrt::Arguments& arguments) const {
    return executable_.execute(arguments);
  }
  HostTensor get(const pjrt::Buffer& buffer, int result) const {
    HostTensor out(module.results[at(result)].result.type);
    buffer.read(out.bytes());
    return out;
  }

  std::vector<std::vector<HostTensor>> run(const std::vector<std::vector<HostTensor>>& ins) const {
    pjrt::Results held(ins.size());
    pjrt::Arguments arguments(ins.size());
    for (std::size_t rank = 0; rank < ins.size(); ++rank) {
      for (const HostTensor& in : ins[rank])
        held[rank].push_back(put(in, static_cast<std::int64_t>(rank)));
      for (const pjrt::Buffer& buffer : held[rank]) arguments[rank].push_back(&buffer);
    }
    const pjrt::Results results = run(arguments);
    std::vector<std::vector<HostTensor>> out(ins.size());
    for (std::size_t rank = 0; rank < ins.size(); ++rank) {
      for (std::size_t i = 0; i < results[rank].size(); ++i)
        out[rank].push_back(get(results[rank][i], static_cast<int>(i)));
    }
    return out;
  }

 private:
  static pjrt::Executable compiled(const hlo::Module& module, std::int64_t first) {
    pjrt::CompileOptions options;
    options.num_replicas = static_cast<int>(module.replicas());
    for (std::int64_t r = 0; r < module.replicas(); ++r) {
      const pjrt::Device& device = cpu_plugin()->local_devices()[at(first + r)];
      options.device_assignment.push_back({device.id});
    }
    return pjrt::compile(*cpu_plugin(), module.text, options);
  }
  std::int64_t first_;
  pjrt::Executable executable_;
};

}  // namespace tessera::test
