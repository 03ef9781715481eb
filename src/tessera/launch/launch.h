#pragma once
/// Ranks as processes: how mpirun, or Tessera itself, is asked for them.

#include <functional>
#include <string>
#include <vector>

#include "tessera/launch/console.h"

namespace tessera {

/// Set in the environment of ranks of which rank 0 is asked to stop by its standard input.
inline constexpr const char* kStopByInput = "TESSERA_STOP_BY_INPUT";

struct Launch {
  int ranks = 0;
  std::string hostfile;          // empty: all on this machine
  std::string bind = "auto";     // core, none; auto: core where all ranks have one or more
  std::string backend = "auto";  // mpi, tcp; auto: mpi where the program was built with it
  bool verbose = false;          // mpirun's own words too
  bool dry_run = false;
  bool help = false;
  bool unsupervised = false;  // this is what `launch --backend tcp` starts in mpirun's place
  Arguments command;          // of tessera, with its arguments; or another program
  bool is_program = false;    // that; it calls Tessera itself
};

/// Reads the arguments of `tessera launch`, which starts one of the commands `known`, or a program
/// that `find` has a path of; empty: it has none. Errors: Fault::Usage.
Launch parse_launch(const Arguments& arguments, const std::vector<std::string>& known,
                    const std::function<std::string(const std::string& name)>& find = {});

/// What each rank runs: `program` is this one.
Arguments rank_words(const Launch& launch, const std::string& program);

/// The machine that launches.
struct Launcher {
  std::string mpirun, program;  // paths
  int cores = 1;                // that this process may use, threads of one core counted once
  bool root = false;
};

/// The program again, as what starts ranks that join over TCP. Errors: Fault::Usage: more ranks
/// than one machine should have; more than its cores, where each is to be bound to its own.
Arguments tcp_words(const Launch& launch, const Launcher& launcher);

/// mpirun and its arguments. Errors: Fault::Usage: a host file that cannot be read.
Arguments mpirun_words(const Launch& launch, const Launcher& launcher);

/// The words as a shell takes them.
std::string shell_text(const Arguments& words);

}  // namespace tessera
