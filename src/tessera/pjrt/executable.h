#pragma once
/// Programs on devices: compile, load, run.

#include <span>
#include <string_view>
#include <vector>

#include "tessera/pjrt/buffer.h"
#include "tessera/pjrt/compile_options.h"
#include "tessera/pjrt/compiled.h"

namespace tessera::pjrt {

/// Of each device, its arguments or results in the module's order.
using Arguments = std::vector<std::vector<const Buffer*>>;
using Results = std::vector<std::vector<Buffer>>;

/// Results that may not be computed yet.
struct Execution {
  Results results;          // [device][result]
  std::vector<Event> done;  // [device]
  /// Until all devices have done. Errors: what happened on one.
  void wait() const;
};

/// A program that is loaded on devices of a client.
class Executable {
 public:
  Executable(Client client, Handle<c::LoadedExecutable> loaded);

  const Compiled& compiled() const { return compiled_; }
  /// The ids of the local devices that it runs on, in the order of arguments and results.
  const std::vector<int>& devices() const { return devices_; }

  /// Runs it once on all its local devices: arguments[device][i] -> results[device][j]. Returns when
  /// all have done.
  ///
  /// Donation: where the module gives an argument tf.aliasing_output, its buffer is deleted and
  /// must not be used again; it stays the caller's to destroy. One buffer cannot be donated twice,
  /// nor be donated and be another argument of the same run. After an error donated arguments may be
  /// gone.
  ///
  /// Executables that share devices must be started in one order, in all processes; else their
  /// collectives wait for each other forever. So one thread of a process starts them.
  /// Errors: Fault::Internal: not one list per device, lists of different lengths, a deleted argument;
  /// what the plugin says.
  Results execute(const Arguments& arguments) const;
  /// The same without waiting. Buffers that it reads may be destroyed meanwhile: the plugin keeps
  /// what it needs.
  Execution start(const Arguments& arguments) const;

 private:
  Client client_;
  Handle<c::LoadedExecutable> loaded_;
  Compiled compiled_;
  std::vector<int> devices_;
  std::size_t num_outputs_ = 0;
};

/// Compiles StableHLO in MLIR's text form, whose entry is `main`. Errors: Fault::Usage: what the
/// compiler does not take, in its words; it ends the process on some bad input.
Executable compile(const Client& client, std::string_view mlir, const CompileOptions& options = {});

/// What Compiled::serialize wrote. Errors: bytes of another plugin or damaged ones (not all are
/// noticed: keep them with a hash, under the plugin's version and the device's kind).
Executable load(const Client& client, std::string_view bytes);

}  // namespace tessera::pjrt
