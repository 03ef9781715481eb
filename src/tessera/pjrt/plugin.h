#pragma once
/// The room `pjrt`: PJRT, XLA's C interface to accelerators, by which a plugin (a shared library that
/// others build) compiles StableHLO and runs it on CPUs, GPUs and TPUs.
/// For: plugins, clients, buffers, executables, and what goes wrong with them.
/// Not for: what is compiled; that is text here.
/// Rejected: the interface's own header. What is used of it are facts (order, type, size of fields),
/// written in c/, which only this room sees; so it builds in every clone, and a test compares the
/// two where a wheel with the header is at hand.
///
/// A plugin is not a safe function: bad input can end the process (XLA's CHECK). So what can be
/// checked before a call is checked here.

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/pjrt/named_value.h"

namespace tessera::pjrt {

namespace c {
struct Api;
}

/// A device has no memory left for what a call wants.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const Error& error) : Error(error) {}
};

/// The version of PJRT's interface that a plugin was compiled with.
struct InterfaceVersion {
  int major = 0, minor = 0;
  friend bool operator==(const InterfaceVersion&, const InterfaceVersion&) = default;
};
/// "0.106"
std::string to_text(const InterfaceVersion& version);

/// The oldest that works; major versions must be equal.
constexpr InterfaceVersion kOldestInterface = {0, 54};

/// A plugin that was loaded. It stays so until the process ends: libraries with threads of their own
/// cannot be unloaded.
class Plugin {
 public:
  /// Use load_plugin. Initialises the plugin.
  Plugin(std::string file, const c::Api* api);
  Plugin(const Plugin&) = delete;

  const std::string& file() const { return file_; }
  InterfaceVersion version() const;
  /// What it tells of itself, such as "xla_version"; empty where it tells nothing.
  const NamedValues& attributes() const { return attributes_; }
  /// A call has failed that could have gone well: a device was lost, or has no memory left. Others
  /// may then never return, such as those that destroy.
  bool failed() const { return failed_; }

  /// The table of calls, and what notes a failure, for this room alone.
  const c::Api& api() const { return *api_; }
  void note_failure() const { failed_ = true; }

 private:
  std::string file_;
  const c::Api* api_;
  NamedValues attributes_;
  mutable std::atomic<bool> failed_ = false;
};

/// The plugin in a file: loaded and initialised at the first call of the process, the same object at
/// later ones, also under another path. Plugins of several files work side by side. Callable from
/// all threads.
/// Errors: Fault::Resource: no such file, no library for this machine, a library that it needs is
/// missing, no plugin, an interface that is too old, a plugin that cannot start.
const Plugin& load_plugin(const std::string& file);

/// The names that find_plugin knows: what `./dev accelerator` brings.
const std::vector<std::string>& plugin_names();

/// The file of the plugin `name`: one of plugin_names() below `folder`, such as
/// build/plugins/cuda13/.../xla_cuda_plugin.so for "cuda"; any other name is a file's and is returned.
/// Errors: Fault::Usage: no plugin of that name there, with the command that brings it.
std::string find_plugin(std::string_view name, const std::string& folder);

}  // namespace tessera::pjrt
