#pragma once
/// Requests to stop, from the keyboard or a job manager, and a launcher's way to end its ranks.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace tessera {

/// How long one request may take to be told twice: `timeout` signals a process and its group,
/// Ctrl-C a script and what it started.
inline constexpr std::chrono::seconds kOneRequest{1};

/// From now on each of stop_signals() sets the flag that is returned; a second one ends the process
/// at once, with the exit code 128 + its number. What was saved stays intact.
///
/// What comes within kOneRequest of the first is no second one. Signals from what started this
/// process are counted apart: mpirun passes on a request that others make too.
std::atomic<bool>& catch_stop_signals();

/// SIGINT, SIGTERM, SIGUSR1 and SIGHUP, but those that are ignored: nohup ignores SIGHUP for what
/// it starts, and a script SIGINT for what it starts by &.
std::vector<int> stop_signals();

/// As long as it lives, there is nothing that could be saved, as while a model is compiled: a
/// request to stop then ends the process at once, with kExitStopped and a sentence.
class NothingToSave {
 public:
  NothingToSave();
  ~NothingToSave() { end(); }
  NothingToSave(const NothingToSave&) = delete;
  NothingToSave& operator=(const NothingToSave&) = delete;
  /// Such a request also removes this file, the lock of the run's folder: where there are no locks
  /// of the system, a file that stays would keep the next run out. Not if another file has its name
  /// by then.
  void removes(const std::string& lock);
  void end();
};

/// As long as it lives, the command writes texts into a temporary file that nobody else will
/// finish: a request to stop ends the process at once, with the exit code 128 + its number, removes
/// the file, and says so.
class UnfinishedTexts {
 public:
  explicit UnfinishedTexts(const std::string& temporary);
  ~UnfinishedTexts();
  UnfinishedTexts(const UnfinishedTexts&) = delete;
  UnfinishedTexts& operator=(const UnfinishedTexts&) = delete;
};

/// From now on SIGTERM from the process that started this one sets the flag that is returned, and
/// asks for nothing else: mpirun sends it when a rank has died, and SIGKILL a second later. There
/// is nothing to save then, nor time for it. Other requests to stop end the process, unless they
/// are caught.
const std::atomic<bool>& catch_launchers_end();

/// While it lives, anything that comes on standard input sets `stop`: `tessera launch` asks rank 0
/// so, because a signal would end a rank that is still coming up. The end of the input means
/// nothing.
class StopByInput {
 public:
  explicit StopByInput(std::atomic<bool>& stop);
  ~StopByInput();
  StopByInput(const StopByInput&) = delete;
  StopByInput& operator=(const StopByInput&) = delete;

 private:
  int end_ = -1;  // an event that ends the thread
  std::thread thread_;
};

}  // namespace tessera
