#pragma once
/// The room `accelerator`: runs programs on the devices of a PJRT plugin: GPUs, TPUs, or the CPU
/// for tests.
/// For: what `--device pjrt:NAME` runs on.
/// Not for: what modules say (hlo), or how a plugin is called (pjrt).
/// Rejected: kernels of ours for what a plugin lacks. An op that it cannot run is an error, as a
/// step that is computed half on the host is neither fast nor what was asked for. One thread for
/// all devices: ranks are threads here as on CPUs, so that batches, checkpoints and launchers know
/// no difference; they meet where a program runs, and one of them starts it for all.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/accelerator/processes.h"
#include "tessera/plan/compiled_bytes.h"
#include "tessera/runtime/backend.h"

namespace tessera {

struct AcceleratorOptions {
  std::string plugin;      // "cpu", "cuda", "rocm", "tpu", or a file
  std::string folder;      // where plugins are, each below its name
  int devices = 1;         // that this process drives
  std::string cache = {};  // a folder for compiled programs; empty: none
  /// What a program may take of a device, where that is less than the device has.
  std::optional<std::int64_t> most_bytes = {};
  /// How many GPUs the environment lets this process see, by plugin ("cuda", "rocm"); not said: all.
  std::map<std::string, int> visible = {};
  /// How long a run of a program may last without one of its parts ending on a device.
  std::chrono::milliseconds patience{600'000};
};

/// The devices of a plugin, taken into use.
class Accelerator : public Backend {
 public:
  /// A call of the plugin has failed, or was left while it lasted. The process should end without
  /// destroying this: a device that was lost may never answer. What a run used lives as long.
  virtual bool failed() const = 0;
};

/// All ranks of the process share the backend.
/// Errors: Fault::Usage: no such plugin, fewer devices than asked for. Fault::Resource: a plugin
/// that does not load, no driver.
std::shared_ptr<Accelerator> make_accelerator(const AcceleratorOptions& options);
/// The same for ranks that were launched, which call it together: each process drives as many
/// devices as it has ranks, and rank r has device r of all. options.devices is not read.
/// Errors: also a plugin that does not join processes; Fault::Peer: a process that does not come.
std::shared_ptr<Accelerator> make_accelerator(const AcceleratorOptions& options,
                                              Communicator& world,
                                              const ProcessName& here = this_process());

/// Compiles a program of a plan for as many of a GPU, by its name, as the plan has ranks. None need
/// be here: the plugin has descriptions of them. `plans`: of a rank of each stage; they keep what
/// programs compute (ProgramPlan::local).
/// Errors: Fault::Usage: no such GPU, with those that there are. Fault::Resource: no plugin.
CompiledBytes compile_for_gpu(const AcceleratorOptions& options, std::string_view gpu,
                              std::span<const Plan* const> plans, std::string_view program);

/// A plugin that is there, for `tessera doctor`.
struct PluginFacts {
  std::string name, file;
  std::string version;  // of its interface
  std::string devices;  // "1 x NVIDIA H100 80GB HBM3, 79.6 GiB"; empty: none
  std::string problem;  // in the plugin's words; empty: none
};
/// The names and files of all plugins below the folder.
std::vector<PluginFacts> plugins_there(const std::string& folder);
/// Loads it, and asks it for the rest. Some plugins end the process.
void ask(PluginFacts& plugin);

}  // namespace tessera
