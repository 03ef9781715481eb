#pragma once
/// What one rank does in saves: it writes its share, from a copy in the background while training
/// goes on, or at once.

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tessera/train/rank_shares.h"

namespace tessera {

/// One thread of low priority that runs tasks one after another.
class BackgroundThread {
 public:
  /// It inherits the cores of the caller, so make it before anything is compiled: a device pins the
  /// calling thread to its own core as soon as it works.
  BackgroundThread();
  /// Finishes the task at hand.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  std::future<void> run(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::packaged_task<void()> task_;  // waits for the thread
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

/// What became of a rank's share. That a disk is full or broken is a result, not an exception: the
/// run goes on.
struct RankResult {
  WrittenPart part;
  std::string problem;  // empty where all is on disk
};
/// As text, from one rank to another.
std::string to_text(const RankResult& result);
RankResult parse_rank_result(std::string_view text);

class RankWriter {
 public:
  /// With `background` saves on the way are made from a copy of the rank's share; its memory is
  /// touched here, so that a machine that lacks it says so before the first step. Without, every
  /// save is waited for. Errors: Fault::Resource: no memory.
  RankWriter(const Plan& plan, const SaveOptions& options,
             std::unique_ptr<BackgroundThread> background);

  const RankShares& shares() const { return shares_; }
  /// What all ranks will write, but for the hashes.
  std::vector<WrittenPart> planned() const;
  const FileCalls& calls() const { return options_.calls; }
  /// Null where every save is waited for.
  BackgroundThread* background() { return background_.get(); }

  /// Writes `pieces`, this rank's, into `folder`: from the copy, after which they may change, or
  /// where there is none or `now`, before it returns. The result of the last one was taken.
  void begin(const std::string& folder, std::vector<CheckpointPiece> pieces, bool now);
  /// True where take() does not wait.
  bool finished() const;
  RankResult take();

 private:
  RankResult write(const std::string& folder, const std::vector<CheckpointPiece>& pieces) const;

  RankShares shares_;
  SaveOptions options_;
  std::string prefix_;
  bool leads_;
  std::vector<std::byte> copy_;
  RankResult result_;
  std::future<void> done_;  // of the save that was begun
  std::unique_ptr<BackgroundThread> background_;
};

}  // namespace tessera
