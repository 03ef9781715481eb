#pragma once
/// A compiled program, which need not be loaded on devices.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/pjrt/handle.h"
#include "tessera/tensor/type.h"

namespace tessera::pjrt {

/// Bytes of a program on one device, as its compiler says.
struct CompiledMemory {
  std::int64_t argument = 0, output = 0;
  std::int64_t alias = 0;  // of the arguments, what outputs take over
  std::int64_t temp = 0, code = 0;
  std::int64_t host_argument = 0, host_output = 0, host_alias = 0, host_temp = 0, host_code = 0;
  std::int64_t compiler_peak = 0;  // counts arguments on the host too; 0: not told

  /// The most that it needs of the device's memory: argument + output - alias + temp.
  std::int64_t device_peak() const { return argument + output - alias + temp; }
  std::int64_t host_peak() const { return host_argument + host_output - host_alias + host_temp; }
  friend bool operator==(const CompiledMemory&, const CompiledMemory&) = default;
};

class Compiled {
 public:
  explicit Compiled(Handle<c::Executable> executable) : executable_(std::move(executable)) {}

  std::string name() const;
  int num_replicas() const;
  int num_partitions() const;
  int num_outputs() const;
  /// Errors: an element type that Tessera has not.
  TensorTypes output_types() const;
  /// Where outputs lie: "device", "pinned_host", ... Empty where the plugin does not tell.
  std::vector<std::string> output_memory_kinds() const;
  CompiledMemory memory() const;
  /// What Executable's load takes, with the same plugin on a machine of the same kind.
  std::string serialize() const;
  /// Equal for equal programs. Nothing where the plugin has none.
  std::optional<std::string> fingerprint() const;
  /// The program as XLA optimised it: an HloModuleProto in bytes, or text; `format` ("hlo", ...) says.
  struct Optimized {
    std::string code, format;
  };
  Optimized optimized() const;
  /// FLOPs and the like, by XLA's names. Empty where the plugin does not tell.
  NamedValues cost() const;

 private:
  Handle<c::Executable> executable_;
};

}  // namespace tessera::pjrt
