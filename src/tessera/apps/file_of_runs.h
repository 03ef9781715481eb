#pragma once
/// Commands that make one file of several runs: `tessera NAME RUN... [--output FILE]`.

#include <functional>
#include <string>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/config/own_file.h"
#include "tessera/config/problems.h"

namespace tessera {

struct FileOfRuns {
  std::string command;  // "chart"
  std::string output;   // where it goes without --output; every file ends as this one does
  std::string what;     // "picture"
  std::string holds;    // "the losses": what is written of the runs
  std::string help;     // what the command does
  OwnFile kind;         // that may be replaced
  /// The bytes of the file; what is wrong with a run becomes a problem.
  std::function<std::string(const std::vector<std::string>& runs, Problems& problems)> make;
};

/// Runs such a command and returns its exit code. A run that is named twice, also by another name
/// of its folder, would be shown beside itself. Errors: Fault::Usage: that; no run; another ending.
int write_file_of_runs(const FileOfRuns& file, const Arguments& arguments, Console& console);

}  // namespace tessera
