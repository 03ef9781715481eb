#include "tessera/launch/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "tessera/accelerator/accelerator.h"
#include "tessera/base/cores.h"
#include "tessera/comm/local.h"
#include "tessera/comm/processes.h"
#include "tessera/config/memory_cap.h"
#include "tessera/launch/agreement.h"
#include "tessera/launch/environment.h"
#include "tessera/launch/exit_code.h"
#include "tessera/launch/launch.h"
#include "tessera/launch/run_secret.h"
#include "tessera/launch/stop_signal.h"
#include "tessera/train/fit_memory.h"

namespace tessera {

namespace {

/// For a failure that no exception can carry out of this process.
[[noreturn]] void end_process(const std::string& report, Console& console) {
  _exit(report_failure(std::make_exception_ptr(Error(Fault::Peer, report)), console));
}

std::chrono::seconds deadline_of(const RunConfig& config) {
  return std::chrono::seconds(config.distributed_timeout);
}

/// "rank 2 of 4", before the ranks have met.
std::string name_of(const Launched& launched) {
  return launched.rank < 0 ? "a rank" : text("rank ", launched.rank, " of ", launched.size);
}

/// The ranks come to one end, and one of them is to tell it: the lowest that can. The launcher ends
/// the others when it ends.
void await_lower_ranks(const Launched& launched) {
  const int turn = std::clamp(launched.rank, 0, 4);
  std::this_thread::sleep_for(turn * std::chrono::milliseconds(500));
}

LaunchedOptions launched_options(const RanksCommand& command, const Launched& launched,
                                 Console& console) {
  LaunchedOptions options;
  options.deadline = deadline_of(command.config);
  if (command.stop != nullptr) {
    options.stop = command.stop;
    options.stuck = [launched](const std::string& report) {
      await_lower_ranks(launched);
      Console console = system_console();  // nobody would hear of a line any more
      end_process(text(name_of(launched), " ", report), console);
    };
    return options;
  }
  options.report = [&console](const std::exception_ptr& failure) {
    report_failure(failure, console);
  };
  if (launched.sigterm_is_death) {
    options.told_to_end = [&end = catch_launchers_end()]() -> bool { return end; };
  }
  options.stuck = [&console, launched, ended = options.told_to_end](const std::string& report) {
    await_lower_ranks(launched);
    const Fault fault = Fault::Peer;
    if (ended && ended()) _exit(static_cast<int>(fault));  // another rank has spoken
    end_process(text(name_of(launched), " ", report,
                     "; if it is just slow, give a longer --distributed-timeout"),
                console);
  };
  if (command.stops) options.stop = &catch_stop_signals();
  return options;
}

/// Cores are shared out; with as many threads as cores or fewer, each keeps to its own.
std::unique_ptr<Device> device_of(const RunConfig& config, const Communicator* world, bool pinned) {
  RunConfig shared = config;
  share_cores(shared, world);
  CpuOptions out = cpu_options(shared);
  if (pinned && world != nullptr && out.threads <= world->cores_per_rank())
    out.first_core = world->rank() * out.threads;
  return make_cpu_device(out);
}

/// Where compiled programs are kept; empty: nowhere.
std::string programs_folder() {
  const std::string folder = user_cache_folder(process_environment());
  return folder.empty() ? "" : folder + "/programs";
}

/// What launchers say that this process sees.
std::map<std::string, int> visible_gpus() {
  std::map<std::string, int> out;
  for (const auto& [plugin, variable] :
       {std::pair{"cuda", "CUDA_VISIBLE_DEVICES"}, std::pair{"rocm", "ROCR_VISIBLE_DEVICES"}}) {
    const std::string seen = value_of(process_environment(), variable);
    if (!seen.empty()) out[plugin] = static_cast<int>(split(seen, ',').size());
  }
  return out;
}

/// What `config` runs on, where that is not the processors.
std::shared_ptr<Accelerator> accelerator_of(const RunConfig& config, Communicator* launched) {
  if (plugin_of(config).empty()) return nullptr;
  const AcceleratorOptions options = accelerator_options(config);
  return launched == nullptr ? make_accelerator(options) : make_accelerator(options, *launched);
}

}  // namespace

std::string plugins_folder() {
  namespace fs = std::filesystem;
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const bool built =
      fs::exists(here / "plugins") || fs::is_regular_file(here.parent_path() / "dev");
  return built ? here / "plugins" : here.parent_path() / "lib" / "tessera" / "plugins";
}

void quiet_plugins() { ::setenv("TF_CPP_MIN_LOG_LEVEL", "1", /*overwrite=*/0); }

/// Of a device nothing is seen until a whole step has ended, which may take minutes.
constexpr int kPatience = 10;

AcceleratorOptions accelerator_options(const RunConfig& config) {
  quiet_plugins();
  return {.plugin = plugin_of(config),
          .folder = plugins_folder(),
          .devices = static_cast<int>(config.parallel.devices),
          .cache = programs_folder(),
          .most_bytes = parse_memory_cap(config.memory_cap),
          .visible = visible_gpus(),
          .patience = kPatience * deadline_of(config)};
}

void share_cores(RunConfig& config, const Communicator* launched) {
  if (config.threads > 0) return;
  if (launched == nullptr && config.parallel.devices == 1) return;  // all of them
  const std::int64_t cores = launched != nullptr ? launched->cores_per_rank()
                                                 : num_usable_cores() / config.parallel.devices;
  config.threads = std::max<std::int64_t>(1, cores);
}

std::unique_ptr<Device> planned_device(const RunConfig& config, const Communicator* launched) {
  if (config.parallel.machine.kernels == KernelSource::Described || !plugin_of(config).empty())
    return make_described_device();
  RunConfig of_rank = config;
  share_cores(of_rank, launched);
  return make_cpu_device(cpu_options(of_rank));
}

std::string fit_to_cap(RunConfig& config, const Communicator* launched, Console& console) {
  if (config.memory_cap == "none") return "";
  return fit_memory(config, *planned_device(config, launched),
                    [&](const std::string& line) { console.err << "notice: " << line << "\n"; });
}

CpuOptions cpu_options(const RunConfig& config) {
  return {.threads = static_cast<int>(config.threads),
          .choices = config.choices ? *config.choices : choices_of(config, machine_choices()),
          .offload_folder = config.offload_folder};
}

Launched launched_as(std::int64_t devices) {
  return launch_of(process_environment(), {.devices = devices, .mpi = has_mpi()});
}

Launched launched_as(const RanksCommand& command) {
  const std::int64_t devices = command.config.parallel.devices;
  return launched_as(command.devices_given || devices != 1 ? devices : 0);
}

void require_alone(const RanksCommand& command) {
  const Launched how = launched_as(command);
  require(how.how == Launched::Alone, "this process was started as one of several ranks (", how.who,
          "), which this call cannot be; start it alone, and give --devices");
}

int on_launched_ranks(const RanksCommand& command, Console& console, const RankBody& body) {
  return on_launched_ranks(launched_as(command), command, console, body);
}

int on_launched_ranks(const Launched& launched, const RanksCommand& command, Console& console,
                      const RankBody& body) {
  if (launched.how != Launched::Tcp && !command.secret_file.empty() && launched.rank <= 0)
    console.err << "notice: --secret-file " << command.secret_file
                << " is not read: only ranks that join over TCP need it, and "
                << (launched.how == Launched::Alone ? "this process is not one\n"
                                                    : "these join by MPI\n");
  if (launched.how == Launched::Alone) return body(nullptr, console);
  // A request to stop is for all ranks, and before they have met no rank could hear of it.
  std::optional<NothingToSave> nothing;
  if (command.stops && command.stop == nullptr && launched.how == Launched::Tcp) nothing.emplace();
  Launched with_secret = launched;
  if (launched.how == Launched::Tcp)
    with_secret.secret = run_secret(command.secret_file, process_environment());
  std::atomic<int> code = 0;  // of whichever rank here has one
  const LaunchedOptions options = launched_options(command, launched, console);
  std::optional<StopByInput> asked;
  if (options.stop != nullptr && std::getenv(kStopByInput) != nullptr) asked.emplace(*options.stop);
  const auto run = [&](Communicator& world) -> void {
    if (nothing) nothing->end();
    require_same(world, asked_of(command.name, command.config, command.own), command.problems);
    std::ostringstream nowhere;
    Console silent = console.with(nowhere);
    const int own = body(&world, world.rank() == 0 ? console : silent);
    if (own != 0) code = own;
  };
  try {
    run_launched(with_secret, run, options);
  } catch (...) {
    if (!plugin_of(command.config).empty()) leave_behind(nullptr);  // a call of it may be under way
    throw;
  }
  return code;
}

void take_launched_devices(RunConfig& config, bool given, Communicator* world, Problems& problems) {
  if (world == nullptr) return;
  std::int64_t& devices = config.parallel.devices;
  if ((given || devices != 1) && devices != world->size())
    problems.add(text("devices is ", devices, ", but ", world->size(),
                      " ranks were launched; leave it out, or launch as many"));
  devices = world->size();
}

void require_kernels(const RunConfig& config) {
  const Machine& machine = config.parallel.machine;
  require(machine.kernels == KernelSource::Cpu, "machine ", machine.name,
          " is only described: its plans have no kernels and cannot run; leave --machine out, or ",
          "give a machine file with kernels = \"cpu\"");
}

void on_ranks(const RunConfig& config, Communicator* launched, Console& console,
              const std::function<void(Communicator*, const Backend&)>& body) {
  require_kernels(config);
  const int devices = static_cast<int>(config.parallel.devices);
  const std::shared_ptr<Accelerator> accelerator = accelerator_of(config, launched);
  const auto on_device = [&](Communicator* world, const Communicator* sharing, bool pinned) {
    if (accelerator) return body(world, *accelerator);
    const std::unique_ptr<Device> device = device_of(config, sharing, pinned);
    body(world, CpuBackend(*device));
  };
  try {
    // The launcher pins processes, or has its reasons not to.
    if (launched != nullptr) return on_device(devices == 1 ? nullptr : launched, launched, false);
    if (devices == 1) return on_device(nullptr, nullptr, false);
    LocalOptions options;
    options.deadline = deadline_of(config);
    options.stuck = [&](const std::string& report) { end_process(report, console); };
    run_ranks(
        devices, [&](Communicator& world) { on_device(&world, &world, true); }, options);
  } catch (...) {
    if (accelerator && accelerator->failed()) leave_behind(accelerator);
    throw;
  }
}

}  // namespace tessera
