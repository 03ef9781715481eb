#include "tessera/apps/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>

#include "tessera/apps/stop_signal.h"
#include "tessera/comm/local.h"
#include "tessera/comm/mpi.h"

namespace tessera {

namespace {

/// Longer than anything that one rank does alone: writing a checkpoint, for example.
constexpr std::chrono::minutes kDeadline{30};

/// Cores are shared out; with as many threads as cores or fewer, each keeps to its own.
std::unique_ptr<Device> device_of(const RunConfig& config, const Communicator* world, bool pinned) {
  CpuOptions out = cpu_options(config);
  if (world != nullptr) {
    const int cores = world->cores_per_rank();
    if (out.threads == 0) out.threads = std::max(1, cores);
    if (pinned && out.threads <= cores) out.first_core = world->rank() * out.threads;
  }
  return make_cpu_device(out);
}

}  // namespace

CpuOptions cpu_options(const RunConfig& config) {
  return {.threads = static_cast<int>(config.threads), .choices = config.choices};
}

int on_launched_ranks(Console& console, const std::function<int(Communicator*, Console&)>& body) {
  if (!mpi_launched([](const char* name) { return std::getenv(name); }))
    return body(nullptr, console);
  int code = 0;
  MpiOptions options;
  options.deadline = kDeadline;
  options.report = [&](const std::exception_ptr& failure) { report_failure(failure, console); };
  // Other launchers send SIGTERM to ask for a stop, and leave time for it.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    options.told_to_end = [&end = catch_launchers_end()]() -> bool { return end; };
  }
  run_mpi_rank(
      [&](Communicator& world) {
        if (world.rank() == 0) {
          code = body(&world, console);
          return;
        }
        std::ostringstream nowhere;
        Console silent = console.with(nowhere);
        code = body(&world, silent);
      },
      options);
  return code;
}

void take_launched_devices(RunConfig& config, Communicator* world, Problems& problems) {
  if (world == nullptr) return;
  std::int64_t& devices = config.parallel.devices;
  if (devices != 1 && devices != world->size())
    problems.add(text("devices is ", devices, ", but ", world->size(),
                      " ranks were launched; leave it out, or launch as many"));
  devices = world->size();
}

void on_ranks(const RunConfig& config, Communicator* launched,
              const std::function<void(Communicator*, Device&)>& body) {
  const int devices = static_cast<int>(config.parallel.devices);
  if (launched != nullptr) {
    // The launcher pins processes, or has its reasons not to.
    return body(devices == 1 ? nullptr : launched, *device_of(config, launched, false));
  }
  if (devices == 1) return body(nullptr, *device_of(config, nullptr, false));
  LocalOptions options;
  options.deadline = kDeadline;
  run_ranks(
      devices, [&](Communicator& world) { body(&world, *device_of(config, &world, true)); },
      options);
}

}  // namespace tessera
