#pragma once
/// The saves of a run, one at a time: every rank writes its share, and the leader commits what all
/// have written.

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/rank_writer.h"

namespace tessera {

/// What became of a save. That a disk is full or broken is a result, not an exception: the run goes
/// on.
struct SaveResult {
  std::int64_t step = 0;
  std::string path;                       // of the checkpoint; empty where the save failed
  std::string problem;                    // why it failed, and what to do; empty where it did not
  std::vector<std::string> notices = {};  // what went wrong after the commit
};

/// Of the leader. What it calls on the group, all ranks do together, between steps.
class CheckpointWriter {
 public:
  /// Saves into `folder`. `mine` is the leader's own, which the group has.
  CheckpointWriter(std::string folder, SaveOptions options, RankGroup& group, RankWriter& mine);
  /// Waits for what is being written here. One rank alone finishes the save that is under way.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Which checkpoints stay from now on. No save is under way.
  void keep(KeptCheckpoints kept) {
    options_.keep_last = kept.newest;
    options_.keep = std::move(kept.named), options_.damaged = std::move(kept.damaged);
  }
  /// Removes the others now; the problems of that. Of the leader alone; no save is under way.
  std::vector<std::string> tidy() const {
    return tidy_checkpoints(options_.calls, folder_,
                            {options_.keep_last, options_.keep, options_.damaged});
  }
  /// Saves now. No save is under way.
  SaveResult save(const CheckpointRecord& record);
  /// Copies the states and saves the copies in the background; without copies, saves now. The
  /// result of the last one was taken.
  void begin(const CheckpointRecord& record);
  /// Takes the result of begin(); none while the save goes on, and where none was begun. To be
  /// asked between steps: it is what lets a save go on from writing to its commit.
  std::optional<SaveResult> finished();
  /// The same, once it is there.
  std::optional<SaveResult> wait();

 private:
  enum class Stage { None, Writing, Committing, Done };
  void start(const CheckpointRecord& record, bool now);
  void collect();
  SaveResult take();
  void commit(const std::vector<std::string>& texts);

  std::string folder_;
  SaveOptions options_;
  RankGroup& group_;
  RankWriter& mine_;
  Stage stage_ = Stage::None;
  bool now_ = false;
  CheckpointRecord record_;                  // of the save that is under way
  std::unique_ptr<UnfinishedFolder> aside_;  // and its folder
  SaveResult result_;
  std::future<void> committed_;
};

}  // namespace tessera
