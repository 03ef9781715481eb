/// What the system tells of this machine and environment.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

#include "tessera/apps/amx_speedup.h"
#include "tessera/apps/ask_plugin.h"
#include "tessera/apps/command.h"
#include "tessera/apps/doctor.h"
#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_files.h"
#include "tessera/comm/launched.h"
#include "tessera/comm/processes.h"
#include "tessera/device/compiled.h"
#include "tessera/device/device.h"
#include "tessera/launch/ranks.h"
#include "tessera/runtime/f32_products.h"
#include "tessera/runtime/rates.h"

namespace tessera {

/// CMake's, made by it: "Release".
const char* build_type();

namespace {

namespace fs = std::filesystem;

std::int64_t limit_of(__rlimit_resource what) {
  rlimit limit = {};
  if (getrlimit(what, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

/// Cores whose time control groups (version 2) of this process give, the least of them; 0: no
/// limit.
double group_cores() {
  double out = 0;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!starts_with(line, "0::/")) continue;
    for (fs::path folder = "/sys/fs/cgroup" + line.substr(3);; folder = folder.parent_path()) {
      double quota = 0, period = 0;
      if (std::ifstream(folder / "cpu.max") >> quota >> period && period > 0)
        out = out == 0 ? quota / period : std::min(out, quota / period);
      if (folder == "/sys/fs/cgroup" || folder == folder.parent_path()) break;
    }
  }
  return out;
}

/// "madvise" of "always [madvise] never".
std::string huge_pages() {
  std::string word;
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  while (file >> word) {
    if (word.front() == '[') return word.substr(1, word.size() - 2);
  }
  return "";
}

/// Bytes of the file system of `path`: all, and free to this user.
std::pair<std::int64_t, std::int64_t> space_of(const std::string& path) {
  struct statvfs space = {};
  if (statvfs(path.c_str(), &space) != 0) return {};
  const auto block = static_cast<std::int64_t>(space.f_frsize);
  return {static_cast<std::int64_t>(space.f_blocks) * block,
          static_cast<std::int64_t>(space.f_bavail) * block};
}

/// Makes a file in the folder, locks it as runs do, and removes it again.
std::string problem_of_folder(const std::string& folder) {
  std::string path = folder + "/.tessera-doctor-XXXXXX";
  const int file = ::mkstemp(path.data());
  if (file < 0)
    return text("no file can be created there: ", system_text(errno), "; give a writable folder");
  const bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  ::close(file);
  ::unlink(path.c_str());
  if (locked) return "";
  return text("its file system has no locks (", system_text(error),
              "), so two runs could write into one folder; give another folder");
}

constexpr const char* kLauncherVariables[] = {"RANK",
                                              "WORLD_SIZE",
                                              "LOCAL_RANK",
                                              "MASTER_ADDR",
                                              "MASTER_PORT",
                                              "NNODES",
                                              "NODE_RANK",
                                              "CUDA_VISIBLE_DEVICES",
                                              "OMPI_COMM_WORLD_RANK",
                                              "OMPI_COMM_WORLD_SIZE",
                                              "PMI_RANK",
                                              "PMI_SIZE",
                                              "SLURM_PROCID",
                                              "SLURM_STEP_NUM_TASKS",
                                              "RANK_ID",
                                              "RANK_SIZE",
                                              "RANK_TABLE_FILE",
                                              "MS_SCHED_HOST",
                                              "MS_SCHED_PORT"};

void add_launcher(const std::function<const char*(const char* name)>& variable,
                  DoctorFacts& facts) {
  for (const char* name : kLauncherVariables) {
    const char* value = variable(name);
    if (value != nullptr && *value != '\0') facts.launcher.push_back(text(name, "=", value));
  }
  try {
    const Launched how = launch_of(variable, {.devices = 0, .mpi = facts.mpi});
    facts.launched = how.how == Launched::Alone ? "none: devices are threads of one process"
                     : how.how == Launched::Mpi ? "MPI"
                                                : text("rank ", how.rank, " of ", how.size);
  } catch (const Error& error) {
    facts.launched = "not clear";
    facts.launch_problem = error.what();
  }
}

std::string first_set(const std::function<const char*(const char* name)>& variable) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = variable(name);
    if (value != nullptr && *value != '\0') return text(name, "=", value);
  }
  return "";
}

}  // namespace

DoctorFacts doctor_facts(const std::string& folder,
                         const std::function<const char*(const char* name)>& variable) {
  DoctorFacts out;
  out.version = kVersion;
  out.build = build_type();
  out.product_library = text("oneDNN ", product_library());
  out.mpi = has_mpi();
  out.processor = processor_name();
  out.isa = machine_choices().isa;
  out.left_out = levels_left_out();
  out.cores = num_usable_cores();
  out.cores_of_machine = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  out.group_cores = group_cores();
  out.load = load_average();
  out.memory = proc_bytes("/proc/meminfo", "MemTotal:");
  out.free_memory = free_memory_bytes();
  out.huge_pages = huge_pages();
  out.open_files = limit_of(RLIMIT_NOFILE);
  out.locked_memory = limit_of(RLIMIT_MEMLOCK);
  out.address_space = limit_of(RLIMIT_AS);
  std::tie(out.shared_memory, out.free_shared_memory) = space_of("/dev/shm");
  out.folder = folder;
  out.free_disk = space_of(folder).second;
  out.folder_problem = problem_of_folder(folder);
  out.locale = first_set(variable);
  const char* omp = variable("OMP_NUM_THREADS");
  out.omp_threads = omp == nullptr ? "" : omp;
  add_launcher(variable, out);
  quiet_plugins();
  out.plugins = plugins_there(plugins_folder());
  for (PluginFacts& plugin : out.plugins) ask_apart(plugin);
  return out;
}

void measure(DoctorFacts& facts) {
  CpuChoices choices = machine_choices();
  if (choices.isa >= Isa::Amx) {
    const AmxSpeedup speedup = amx_speedup();
    choices.f32_products = faster_products(speedup.times);
    facts.f32_products =
        text(", by ", long_name(choices.f32_products), " (", to_text(speedup), ")");
  }
  const DeviceRates rates =
      measure_rates(*make_cpu_device({.threads = facts.cores, .choices = choices}));
  facts.flops_per_s = rates.flops_per_s;
  if (!rates.streams.empty()) facts.bytes_per_s = rates.streams.back().bytes_per_s;
}

}  // namespace tessera
