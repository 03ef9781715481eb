/// Who started this process.

#include <array>
#include <cstdlib>
#include <string>

#include "tessera/comm/mpi.h"

namespace tessera {

bool mpi_launched(const std::function<const char*(const char* name)>& variable) {
  // Slurm's are there in a plain shell of an allocation too, but not the rank of a task.
  constexpr std::array<const char*, 4> kSizes = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                                 "MV2_COMM_WORLD_SIZE", "PMIX_RANK"};
  for (const char* name : kSizes) {
    if (variable(name) != nullptr) return true;
  }
  const char* tasks = variable("SLURM_NTASKS");
  return variable("SLURM_PROCID") != nullptr && tasks != nullptr && std::atoi(tasks) > 1;
}

}  // namespace tessera
