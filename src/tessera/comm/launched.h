#pragma once
/// How this process was started: alone, or as one of several that are one run.

#include <cstdint>
#include <functional>
#include <string>

namespace tessera {

/// What the variables of this process say.
struct Launched {
  enum How {
    Alone,  // ranks are threads of this process
    Mpi,    // by mpirun, or what speaks its protocols: MPI knows the rest
    Tcp     // by anything else that says which rank this is: the ranks join over TCP
  };
  How how = Alone;
  int rank = -1;        // of Tcp; of Mpi where its launcher says so, else -1
  int size = -1;        // ranks of the run, as `rank`
  int here = 1;         // ranks of this process, threads from `rank` on
  std::string address;  // of rank 0, a name or a number; of Tcp, as what follows
  int port = 0;         // at which rank 0 listens
  std::string run;      // the launcher's name of the run; may be empty
  int listener = -1;    // of rank 0: an open file of this process that listens there; -1: none
  std::string secret;   // TESSERA_SECRET: what all ranks know and nobody else; empty: not set
  /// Of Mpi: the launcher sends SIGTERM to the others once a rank has died. That of others asks for
  /// a stop, and they leave time for it.
  bool sigterm_is_death = false;
  /// Where the above was read: "RANK, WORLD_SIZE" and "MASTER_ADDR, MASTER_PORT".
  std::string who, where;
};

/// What the caller knows beside the variables.
struct LaunchWishes {
  std::int64_t devices = 0;  // that were asked for; 0: none were told
  bool mpi = true;           // the program was built with MPI
};

/// Reads how this process was started. `variable` looks a variable up: null where it is not set;
/// one that is empty counts as not set. A file that RANK_TABLE_FILE names is read.
///
/// The first of these that says that there is more than one rank decides; others that are set too
/// must say the same.
///
///   MPI                          mpirun, mpiexec, srun --mpi=pmix; not a shell that srun started
///                                as its only task
///   RANK, WORLD_SIZE             torchrun; with MASTER_ADDR, MASTER_PORT (the port beside it where
///                                torchrun listens there itself); TESSERA_LISTEN_FD: a file that
///                                listens there already
///   RANK_ID, RANK_SIZE           MindSpore; with RANK_TABLE_FILE, DEVICE_ID, or MS_SCHED_HOST and
///                                MS_SCHED_PORT (msrun)
///   NNODES, NODE_RANK            one process a host: each has its share of the devices as threads;
///                                with MASTER_ADDR, MASTER_PORT
///   SLURM_PROCID, SLURM_STEP_NUM_TASKS   srun without a protocol of MPI
///
/// Ranks that join over TCP prove to each other that they know the secret.
///
/// Errors:  Fault::Usage: half of a pair, a rank outside of the size, a port or number that is
///          none, two ways that differ, a rank table that lacks the rank or has one twice. The
///          message names the variable and its value and says what to do.
Launched launch_of(const std::function<const char*(const char* name)>& variable,
                   const LaunchWishes& wishes);

}  // namespace tessera
