#pragma once
/// What `tessera doctor` tells: what this machine and environment offer, and what is wrong there.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/accelerator/accelerator.h"
#include "tessera/device/isa.h"

namespace tessera {

/// Bytes, seconds and counts. What the system does not say is 0, or an empty text.
struct DoctorFacts {
  std::string version, build, product_library;
  bool mpi = false;

  std::string processor;
  Isa isa = Isa::Baseline;
  std::string left_out;                 // instruction sets that this program has no kernels for
  int cores = 1, cores_of_machine = 1;  // usable by this process
  double group_cores = 0;               // time that control groups give; 0: no limit
  double load = 0;                      // programs that ran, on average of a minute

  std::int64_t memory = 0, free_memory = 0;  // free: of control groups too
  std::string huge_pages;                    // "always", "madvise" or "never"
  std::int64_t open_files = 0, locked_memory = 0, address_space = 0;  // limits; -1: none
  std::int64_t shared_memory = 0, free_shared_memory = 0;             // /dev/shm

  std::string folder;
  std::int64_t free_disk = 0;
  std::string folder_problem;  // it cannot be written, or has no locks; empty: all is well

  std::string locale, omp_threads;
  std::vector<std::string> launcher;  // NAME=VALUE of variables that are set
  std::string launched;               // how a run would be started by them
  std::string launch_problem;         // of these variables

  std::vector<PluginFacts> plugins;  // of accelerators, that are there

  double flops_per_s = 0, bytes_per_s = 0;  // measured, of all usable cores
  std::string f32_products;                 // ", by AMX (why)"; empty: there is one way
};

/// Reads all but the rates. `variable` looks a variable of the environment up, null where it is not
/// set; `folder` is where runs are to be written.
DoctorFacts doctor_facts(const std::string& folder,
                         const std::function<const char*(const char* name)>& variable);
/// Measures the rates and, unless it is kept from before, what AMX brings f32 products, on all
/// usable cores: about a second and 256 MiB.
void measure(DoctorFacts& facts);

struct DoctorLine {
  std::string name, value;
  std::string problem = {};  // what is wrong, and what to do; empty: nothing
};
/// In groups, as they are printed.
std::vector<DoctorLine> examine(const DoctorFacts& facts);

std::string to_text(const std::vector<DoctorLine>& lines);
/// docs/reference/files.md has the keys.
std::string to_json(const std::vector<DoctorLine>& lines, const DoctorFacts& facts);

}  // namespace tessera
