#pragma once
/// The room `launch`: what a process is: ranks, what starts them, signals, exit codes, the
/// environment.
/// For: the only place, with what is above, where the environment is read.
/// Not for: what ranks send (comm).
/// Rejected: ranks that begin at once: they compare flags and program first, as ranks of different
/// flags would train together and compute wrong numbers. A hang is counted from the last sign of
/// life, as a long save must not look like one.
///
/// The ranks of a command: threads of this process, or processes that a launcher started.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tessera/accelerator/accelerator.h"
#include "tessera/comm/communicator.h"
#include "tessera/comm/launched.h"
#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/device/device.h"
#include "tessera/launch/console.h"
#include "tessera/runtime/backend.h"

namespace tessera {

/// A command that runs on ranks, as its flags say.
struct RanksCommand {
  std::string name;
  RunConfig config;              // as it was given
  Problems problems;             // of the flags
  bool stops = false;            // it saves and ends in order where it is asked to stop
  bool devices_given = false;    // by a flag
  std::string secret_file = {};  // of --secret-file
  std::map<std::string, std::string> own =
      {};  // "--check": what is no field, and alike on all ranks
  /// Of a program that is no command: it stops by this alone, no signal is touched, and failures are
  /// thrown, on each rank.
  std::atomic<bool>* stop = nullptr;
};

/// How this process was started, where so many devices were asked for (0: no word of them). What
/// says so may be gone once the run has begun, as a rank table is: ask once. Errors: Fault::Usage:
/// its variables contradict themselves.
Launched launched_as(std::int64_t devices);
Launched launched_as(const RanksCommand& command);

/// Errors: Fault::Usage: a launcher started this process as one of several ranks.
void require_alone(const RanksCommand& command);

using RankBody = std::function<int(Communicator* world, Console& console)>;
/// Where a launcher started this process, `body` runs as one of its ranks, with a console that is
/// silent but on rank 0; else alone, with nullptr for a world. A failure of several processes is
/// reported once. Before anything else launched ranks find out that they were all asked for the
/// same. Until they have met, there is nothing to save.
int on_launched_ranks(const Launched& launched, const RanksCommand& command, Console& console,
                      const RankBody& body);
int on_launched_ranks(const RanksCommand& command, Console& console, const RankBody& body);

/// The devices of `config` are those that were launched. Errors, as problems: it says another
/// number. `given`: a flag says it; else 1 says nothing, as every run on one device records it.
void take_launched_devices(RunConfig& config, bool given, Communicator* world, Problems& problems);

/// Commands run plans that tests have run with poisoned memory.
inline constexpr EngineOptions kFast{.poison = false};

/// Sets threads of a rank: where none are told, its share of the cores, of those of `launched`
/// ranks or of this machine.
void share_cores(RunConfig& config, const Communicator* launched = nullptr);

/// What `config` says of a CPU device.
CpuOptions cpu_options(const RunConfig& config);

/// What the plans of `config` are made for: a device of its machine that is only described, or one
/// of this machine with a rank's share of the cores.
std::unique_ptr<Device> planned_device(const RunConfig& config,
                                       const Communicator* launched = nullptr);

/// Before a plugin is loaded: it prints warnings and errors alone.
void quiet_plugins();
/// The plugin and devices of `config`, and where plugins are.
AcceleratorOptions accelerator_options(const RunConfig& config);
/// Where ./dev accelerator puts plugins, and where an installed command has them.
std::string plugins_folder();

/// As fit_memory, on a device like that of each rank; the begin of a search is told on `console`.
std::string fit_to_cap(RunConfig& config, const Communicator* launched, Console& console);

/// Errors: Fault::Usage: the machine of `config` is only described.
void require_kernels(const RunConfig& config);

/// Calls `body` on every rank of `config`: on the launched one, or on threads, one each. `world` is
/// nullptr where there is one rank. A thread that hangs is told on `console`, and ends the process.
/// Errors: as require_kernels.
void on_ranks(const RunConfig& config, Communicator* launched, Console& console,
              const std::function<void(Communicator* world, const Backend& backend)>& body);

}  // namespace tessera
