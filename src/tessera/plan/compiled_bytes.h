#pragma once
/// What an accelerator's compiler says of a program, beside our own plan.

#include <cstdint>
#include <string>

namespace tessera {

/// Bytes of a training step on one device. Arguments are states and batch, and states are among the
/// outputs, in place: these are the alias.
struct CompiledBytes {
  std::string compiler;  // "pjrt:cuda xla_cuda_plugin.so 0.116 for 8 x NVIDIA H100 80GB HBM3"
  std::int64_t argument = 0, output = 0, alias = 0, temporary = 0, host = 0;
  std::int64_t code = 0;  // of the module's text
  double seconds = 0;     // to compile

  /// The most that it needs of the device's memory at a time.
  std::int64_t peak() const { return argument + output - alias + temporary; }
};

}  // namespace tessera
