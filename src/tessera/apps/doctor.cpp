#include "tessera/apps/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/format.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;
constexpr std::int64_t kLeastMemory = kGiB, kLeastDisk = kGiB, kLeastShared = 64 * kMiB;
constexpr std::int64_t kLeastFiles = 1024;  // of a rank with some hundred others
constexpr double kBusy = 0.25;              // of the cores, by other programs

std::string limit_text(std::int64_t limit) { return limit < 0 ? "no limit" : bytes_text(limit); }

DoctorLine cores_line(const DoctorFacts& f) {
  DoctorLine out{"cores", text(f.cores, " of ", f.cores_of_machine)};
  if (f.group_cores > 0) out.value += format(", with the time of %.2g", f.group_cores);
  if (f.group_cores > 0 && f.group_cores < f.cores - 0.01)
    out.problem = format(
        "a control group allows %.2g cores' time, shared by %d threads; give "
        "--threads %d, or raise its cpu.max",
        f.group_cores, f.cores, std::max(1, static_cast<int>(f.group_cores)));
  return out;
}

DoctorLine isa_line(const DoctorFacts& f) {
  DoctorLine out{"instruction set", std::string(to_text(f.isa))};
  if (f.isa == Isa::Amx) {
    out.value += ": bf16 products run on tiles";
  } else if (f.isa == Isa::Avx512Bf16) {
    out.value += ": bf16 products run natively";
  } else if (f.isa == Isa::Baseline && !f.left_out.empty()) {
    out.problem = text(
        "this program has no fast kernels for this processor, because it was compiled without ",
        f.left_out, "; run ./dev build here, which compiles all");
  } else if (f.isa == Isa::Baseline) {
    out.problem =
        "without AVX2, kernels are slow and untested; use a processor with AVX2, or a virtual "
        "machine that exposes it";
  } else {
    out.value += ": bf16 is converted to f32, which saves no time";
  }
  if (!f.left_out.empty()) out.value += text("; not compiled: ", f.left_out);
  return out;
}

/// That no device is there is no problem of this machine.
DoctorLine plugin_line(const PluginFacts& plugin) {
  return {text("device pjrt:", plugin.name),
          text(plugin.devices.empty() ? "no device" : plugin.devices, "; ", plugin.file,
               plugin.version.empty() ? "" : text(", interface ", plugin.version),
               plugin.problem.empty() ? "" : text("; ", plugin.problem))};
}

DoctorLine load_line(const DoctorFacts& f) {
  DoctorLine out{"load", format("%.2f", f.load)};
  if (f.load > kBusy * f.cores)
    out.problem = format(
        "other programs use about %.1f of %d cores; wait for them, or give fewer --threads: a step "
        "waits for its slowest thread",
        f.load, f.cores);
  return out;
}

DoctorLine memory_line(const DoctorFacts& f) {
  DoctorLine out{"memory", text(bytes_text(f.free_memory), " free of ", bytes_text(f.memory))};
  if (f.free_memory > 0 && f.free_memory < kLeastMemory)
    out.problem =
        "little is left for a run; end other programs, or raise memory.max of the control group; "
        "`tessera plan` prints how much a run takes";
  return out;
}

DoctorLine huge_pages_line(const DoctorFacts& f) {
  DoctorLine out{"huge pages", f.huge_pages.empty() ? "not known" : f.huge_pages};
  if (f.huge_pages == "never")
    out.problem =
        "the system provides none, so large models are slower; as root: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled";
  return out;
}

DoctorLine files_line(const DoctorFacts& f) {
  DoctorLine out{"open files (ulimit -n)",
                 f.open_files < 0 ? "no limit" : number_text(f.open_files)};
  if (f.open_files >= 0 && f.open_files < kLeastFiles)
    out.problem = text(
        "each rank process holds a connection to every other; raise it: ulimit "
        "-n ",
        kLeastFiles);
  return out;
}

DoctorLine address_line(const DoctorFacts& f) {
  DoctorLine out{"address space (ulimit -v)", limit_text(f.address_space)};
  if (f.address_space >= 0 && f.address_space < f.free_memory)
    out.problem = text("it is below the ", bytes_text(f.free_memory),
                       " of free memory, so runs may run out of it; raise it: ulimit -v unlimited");
  return out;
}

DoctorLine shared_line(const DoctorFacts& f) {
  DoctorLine out{"/dev/shm", f.shared_memory == 0 ? "not there"
                                                  : text(bytes_text(f.free_shared_memory),
                                                         " free of ", bytes_text(f.shared_memory))};
  if (f.mpi && f.free_shared_memory < kLeastShared)
    out.problem =
        text("MPI ranks on one machine share memory there and need ", bytes_text(kLeastShared),
             "; give a container --shm-size, or start ranks "
             "with launch --backend tcp");
  return out;
}

DoctorLine folder_line(const DoctorFacts& f) {
  DoctorLine out{text("folder ", f.folder), text(bytes_text(f.free_disk), " free"),
                 f.folder_problem};
  if (out.problem.empty() && f.free_disk < kLeastDisk)
    out.problem = "little space is left for checkpoints; free some, or give another folder";
  return out;
}

}  // namespace

std::vector<DoctorLine> examine(const DoctorFacts& f) {
  std::vector<DoctorLine> out;
  out.push_back({"version", text(f.version, f.build.empty() ? "" : ", built as ", f.build),
                 f.build == "Debug" ? "it was built without optimization and is many times slower; "
                                      "build it with ./dev build, or cmake --preset release"
                                    : ""});
  out.push_back({"matrix products", f.product_library});
  out.push_back({"MPI", f.mpi ? "built in" : "not built in: ranks join over TCP"});
  out.push_back({"processor", f.processor.empty() ? "not known" : f.processor});
  out.push_back(isa_line(f));
  out.push_back(cores_line(f));
  out.push_back(load_line(f));
  out.push_back(memory_line(f));
  out.push_back(huge_pages_line(f));
  out.push_back(
      {"locked memory (ulimit -l)", text(limit_text(f.locked_memory), "; none is needed")});
  out.push_back(address_line(f));
  out.push_back(files_line(f));
  out.push_back(shared_line(f));
  out.push_back(folder_line(f));
  out.push_back({"locale", f.locale.empty() ? "none set" : f.locale});
  for (const PluginFacts& plugin : f.plugins) out.push_back(plugin_line(plugin));
  out.push_back(
      {"OMP_NUM_THREADS", f.omp_threads.empty()
                              ? "not set"
                              : text(f.omp_threads, ", which is not read: give --threads")});
  out.push_back({"launcher",
                 f.launcher.empty() ? f.launched : text(f.launched, ", by ", join(f.launcher)),
                 f.launch_problem});
  if (f.flops_per_s > 0)
    out.push_back({"products, f32",
                   format("%.3g GFLOP/s on all cores", f.flops_per_s * 1e-9) + f.f32_products});
  if (f.bytes_per_s > 0)
    out.push_back({"memory bandwidth", format("%.3g GB/s on all cores", f.bytes_per_s * 1e-9)});
  return out;
}

std::string to_text(const std::vector<DoctorLine>& lines) {
  constexpr std::size_t kIndent = 30;
  std::string out;
  int problems = 0;
  for (const DoctorLine& line : lines) {
    std::string name = "  " + line.name;
    name.resize(std::max(kIndent, name.size() + 2), ' ');
    out += text(name, line.value, "\n");
    if (line.problem.empty()) continue;
    ++problems;
    out += text("! ", std::string(kIndent - 2, ' '), line.problem, "\n");
  }
  return out + (problems == 0   ? "nothing is wrong\n"
                : problems == 1 ? "1 problem, marked with !\n"
                                : text(problems, " problems, marked with !\n"));
}

std::string to_json(const std::vector<DoctorLine>& lines, const DoctorFacts& facts) {
  nlohmann::ordered_json out;
  out["problems"] =
      std::ranges::count_if(lines, [](const DoctorLine& line) { return !line.problem.empty(); });
  out["cores"] = facts.cores;
  out["free_memory_bytes"] = facts.free_memory;
  out["free_disk_bytes"] = facts.free_disk;
  out["isa"] = to_text(facts.isa);
  out["load"] = facts.load;
  out["product_flops_per_s"] = facts.flops_per_s;
  out["memory_bytes_per_s"] = facts.bytes_per_s;
  out["lines"] = nlohmann::ordered_json::array();
  for (const DoctorLine& line : lines)
    out["lines"].push_back(
        {{"name", line.name},
         {"value", line.value},
         {"problem", line.problem.empty() ? nlohmann::ordered_json(nullptr)
                                          : nlohmann::ordered_json(line.problem)}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tessera
