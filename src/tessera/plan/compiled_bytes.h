#pragma once
/// What an accelerator's compiler says of a program, beside our own plan.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// Bytes on a device of a stage at its fullest moment, and the module that runs then. Without a
/// pipeline one module is the whole step: arguments are states and batch, and states are among the
/// outputs, in place: these are the alias.
struct StageBytes {
  std::string module;
  std::int64_t microbatch = 0;  // that it runs for
  std::int64_t argument = 0, output = 0, alias = 0, temporary = 0;
  std::int64_t beside = 0;  // that the device holds, and the module does not read
  std::int64_t host = 0;
  bool hides_latency = true;  // of communication; else it was compiled to take less memory

  /// The most that it needs of the device's memory at a time.
  std::int64_t peak() const { return beside + argument + output - alias + temporary; }
};

/// Of a training step.
struct CompiledBytes {
  std::string compiler;  // "pjrt:cuda xla_cuda_plugin.so 0.116 for 8 x NVIDIA H100 80GB HBM3"
  std::vector<StageBytes> stages;
  std::int64_t code = 0;  // of the texts of modules
  double seconds = 0;     // to compile

  /// Which stage's devices take most.
  int fullest() const {
    const auto most = std::ranges::max_element(stages, {}, &StageBytes::peak);
    return static_cast<int>(most - stages.begin());
  }
  const StageBytes& most() const { return stages[static_cast<std::size_t>(fullest())]; }
  std::int64_t peak() const { return most().peak(); }
};

}  // namespace tessera
