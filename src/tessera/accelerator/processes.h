#pragma once
/// The processes of a run on accelerators: which ranks each has, and how they work together.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"

namespace tessera {

class Board;
class PluginThreads;
struct Patience;

/// Consecutive ranks, which are threads of one process.
struct ProcessRanks {
  int first = 0, count = 1;
  int first_on_host = 0;  // lower ranks on the same host, in other processes
  friend bool operator==(const ProcessRanks&, const ProcessRanks&) = default;
};

struct Processes {
  std::vector<ProcessRanks> all;  // in the order of their ranks
  int own = 0;                    // which of them is this one

  const ProcessRanks& here() const { return all[static_cast<std::size_t>(own)]; }
  /// One rank of each process calls the plugin for all.
  bool leads(int rank) const { return rank == here().first; }
};

/// One process with so many ranks.
Processes one_process(int ranks);
/// Which of the GPUs that it sees a process takes first: behind those of lower ranks of its host. With
/// CUDA_VISIBLE_DEVICES and the like it sees `visible`, 0 without: as many as it has ranks are its own.
int first_gpu(const ProcessRanks& here, int visible);
/// Names this process and its host, as all ranks see them.
struct ProcessName {
  std::string host, process;
};
ProcessName this_process();
/// The processes of a world, by what each rank says where it is; all ranks call it together. Errors:
/// Fault::Usage: the ranks of a process are not consecutive.
Processes processes_of(Communicator& world, const ProcessName& mine);

/// Does what may last in every process at a time, each on a thread of its own (PluginWork), while
/// the ranks carry what plugins tell each other; all ranks call it together. `work` is empty but on
/// the ranks that lead. With one process `board` is null, and only the rank that leads need call it.
/// Returns when all have done. Errors: of `work`; another rank has failed; Fault::Peer: no patience
/// is left.
void work_together(PluginThreads& threads, std::function<void()> work,
                   std::function<void()> afterwards, const Patience& patience,
                   std::shared_ptr<Board> board, Communicator* world);

}  // namespace tessera
