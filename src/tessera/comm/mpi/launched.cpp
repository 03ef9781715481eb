/// Who started this process.

#include <cstdlib>

#include "tessera/comm/mpi.h"

namespace tessera {

bool mpi_launched(const std::function<const char*(const char* name)>& variable) {
  const auto has = [&](const char* name) { return variable(name) != nullptr; };
  const auto number = [&](const char* name) { return has(name) ? std::atoi(variable(name)) : 0; };
  if (has("OMPI_COMM_WORLD_SIZE") || has("MV2_COMM_WORLD_SIZE") || number("PMI_SIZE") > 1)
    return true;
  // Slurm says the same to a task and to a plain shell that is the only task of its step: there a
  // program is a rank only where the step has several.
  const bool in_slurm = has("SLURM_PROCID");
  if (!in_slurm) return has("PMI_SIZE") || has("PMIX_RANK");
  return number(has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS") > 1;
}

}  // namespace tessera
