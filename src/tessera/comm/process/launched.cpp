/// Who started this process.

#include <cstdlib>

#include "tessera/comm/processes.h"

namespace tessera {

bool mpi_launched(const std::function<const char*(const char* name)>& variable) {
  const auto has = [&](const char* name) { return variable(name) != nullptr; };
  const auto number = [&](const char* name) { return has(name) ? std::atoi(variable(name)) : 0; };
  if (has("OMPI_COMM_WORLD_SIZE") || has("MV2_COMM_WORLD_SIZE") || number("PMI_SIZE") > 1)
    return true;
  // Slurm says much of this to a plain shell and to a batch script as well: there a program is a
  // rank only where its step has several tasks.
  if (!has("SLURM_PROCID")) return has("PMI_SIZE") || has("PMIX_RANK");
  return number("SLURM_STEP_NUM_TASKS") > 1;
}

}  // namespace tessera
