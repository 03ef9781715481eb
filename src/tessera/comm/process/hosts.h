#pragma once
/// Where the processes of a world run.

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "tessera/comm/process/watch.h"

namespace tessera::process {

/// What each rank tells the others of its process when they meet.
struct Process {
  /// The lowest rank that shares memory with it: one number for each machine, whatever its name.
  int machine = 0;
  int pid = 0;
  /// The pid namespace in which `pid` counts, as the system identifies it; 0, 0: not known.
  dev_t pid_space_device = 0;
  ino_t pid_space = 0;
  cpu_set_t cores = {};              // on which it may run
  std::array<char, 64> host_name{};  // for messages

  /// What of it no process of so many ranks writes; empty: nothing.
  std::string problem(int ranks) const;
};

Process this_process(int machine);

/// How a rank was lost, after "found that": "rank 3 has died", or that its connection broke. A
/// system closes or resets the connections of a process that has ended; another errno says that
/// nothing came from there. `who` is "rank 3", or more of it.
std::string loss_text(const std::string& who, int number);

/// Other processes whose pids mean the same to rank `me`: those of its machine and pid namespace.
std::vector<Watch::Pid> watchable(std::span<const Process> all, int me);

/// Ranks on the machine of rank `me`, and the cores that those may use together.
struct Neighbours {
  int ranks = 0, cores = 0;
};
Neighbours neighbours(std::span<const Process> all, int me);

/// Cores of each rank: backend/cores.h.
int cores_per_rank(std::span<const Process> all);

}  // namespace tessera::process
