#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tessera/comm/processes.h"

namespace tessera {
namespace {

TEST(Launched, AsTheVariablesOfTheProcessSay) {
  struct Case {
    const char* name;
    std::map<std::string, std::string> variables;
    bool launched;
  };
  const Case cases[] = {
      {"nothing", {}, false},
      {"mpirun of Open MPI", {{"OMPI_COMM_WORLD_SIZE", "4"}}, true},
      {"one rank of it", {{"OMPI_COMM_WORLD_SIZE", "1"}}, true},
      {"in a shell of an allocation",
       {{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}},
       true},
      {"mpiexec of MPICH", {{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}, true},
      {"one rank of it", {{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}, true},
      {"PMIx without a word of the size", {{"PMIX_RANK", "3"}}, true},
      {"srun --mpi=pmix -n 4",
       {{"PMIX_RANK", "3"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}},
       true},
      {"srun --mpi=pmix -n 1 --pty bash",
       {{"PMIX_RANK", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
       false},
      {"the same, and the allocation has more tasks",
       {{"PMIX_RANK", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_NTASKS", "4"}},
       false},
      {"srun --mpi=pmi2 -n 1 --pty bash",
       {{"PMI_SIZE", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}},
       false},
      {"srun --mpi=none -n 4",
       {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}},
       true},
      {"the script of sbatch --ntasks=4",
       {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NPROCS", "4"}},
       false},
      {"a plain shell of an allocation", {{"SLURM_NTASKS", "4"}}, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(mpi_launched([&](const char* name) -> const char* {
                const auto found = c.variables.find(name);
                return found == c.variables.end() ? nullptr : found->second.c_str();
              }),
              c.launched);
  }
}

}  // namespace
}  // namespace tessera
