#pragma once
/// The folder of a run: whose it is, and that only one run writes into it.

#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint_calls.h"

namespace tessera {

struct RunConfig;

/// Names of files of a run in OUTPUT.
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kSummaryFile = "summary.json";
inline constexpr const char* kConfigFile = "config.toml";

std::string in_folder(const std::string& folder, const std::string& name);

/// Where the run of `config` keeps its checkpoints.
std::string checkpoints_folder(const RunConfig& config);

/// `path` from the root on: it leads to the same place when the working folder is gone.
/// Errors: Fault::Resource: it is gone already.
std::string absolute_path(const std::string& path);

/// The flags that go on with the run of `folder`.
std::string flags_to_go_on(const std::string& folder, const std::string& resume = "auto");

/// What a run left in `folder`, by name; empty where there is nothing of one.
std::vector<std::string> traces_of_run(const std::string& folder);

/// Holds OUTPUT for one process; makes the folder where it is missing. The file `lock` in it names
/// host, process and start. A lock whose process is gone is taken over, with a notice. What killed
/// runs left of the files above that they were writing is removed.
///
/// On a file system without locks (flock) nobody can tell whether the run that a lock names is
/// gone: it is refused. Without such a file a notice says that nothing keeps a second run away.
///
/// Errors: Fault::Resource: the folder cannot be made or written, or another run holds it or may.
class OutputLock {
 public:
  OutputLock(const std::string& folder, std::vector<std::string>& notices,
             const FileCalls& calls = {});
  /// Removes the file, unless it is another run's by now.
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  /// Of the file.
  const std::string& path() const { return path_; }
  /// False once it is known that the file is gone, or that another one has its name.
  bool held() const;
  /// Writes config.toml.
  /// Errors: Fault::Resource.
  void write_config(const std::string& toml);
  /// Takes the lock anew where it is not held, as after somebody removed the folder, and writes
  /// config.toml again where that is gone. Returns the problem where that fails, or where something
  /// of a run lies in the folder that is not `ours`: then nothing may be written there.
  std::string hold(bool ours);

 private:
  std::string folder_, path_;
  std::string config_;  // what was written; empty: nothing yet
  FileCalls calls_;
  int file_ = -1;
};

}  // namespace tessera
