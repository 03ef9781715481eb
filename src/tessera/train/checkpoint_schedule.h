#pragma once
/// The saves of a run as its loop sees them: when they are made, what is told of them, and when
/// failures end the run.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/config/output_folder.h"
#include "tessera/train/best_checkpoint.h"
#include "tessera/train/checkpoint_writer.h"
#include "tessera/train/metrics.h"
#include "tessera/train/rank_writer.h"
#include "tessera/train/trainer.h"

namespace tessera {

/// How the run of `config` saves. Errors: none.
SaveOptions save_options(const RunConfig& config, const FileCalls& calls);

/// That writes saves on the way while training goes on; nullptr where they are waited for. To be
/// asked for before the device works.
std::unique_ptr<BackgroundThread> background_thread(const RunConfig& config);

/// A checkpoint that is saved and the best so far.
struct BestSaved {
  std::int64_t step = 0;
  std::string path;
};

class CheckpointSchedule {
 public:
  /// `record` says what is saved beside the states, as they are when it is called; `ended`, whether
  /// training has ended and at_end() is all that follows.
  CheckpointSchedule(const RunConfig& config, const TrainOptions& options, OutputLock& lock,
                     RankGroup& group, RankWriter& mine, std::function<CheckpointRecord()> record,
                     std::function<bool()> ended);

  /// The run goes on from this checkpoint. If that lies in the run's own folder, the state of its
  /// step is saved.
  void goes_on_from(const Checkpoint& from);
  /// Keeps the best checkpoint from now on; `metrics` say which that was before.
  void keep_best(const MetricsFile& metrics);
  /// A validation at `step`, whose state may be saved already.
  void validated(std::int64_t step, double loss);
  /// True if the state of `step` is the best and not saved yet.
  bool best_is_due(std::int64_t step) const { return best_ && best_->wants(step); }
  /// A step ended: the state that it began with is one from which training can go on, unless it was
  /// skipped. Until a step was trained from the newest checkpoint, the one before it stays, however
  /// few are to be kept; while steps are skipped, all stay.
  void trained(std::int64_t step, bool skipped);
  /// Takes note of a save that has ended. Between steps.
  void look();
  /// In the background, where there is memory for it; training goes on whatever comes of it.
  void on_the_way(std::int64_t step, MetricsFile& metrics);
  /// The state at the end, unless it is saved in the run's folder: without it the run has not
  /// ended well.
  /// Errors: Fault::Resource.
  void at_end(std::int64_t step, MetricsFile& metrics);
  /// At the end of a run of which the last `bad` steps, up to `step`, were skipped: the state that
  /// they left as it was is saved, unless a checkpoint has it; a save that fails is a notice.
  /// Returns the flags to go on with, and those to go back behind that state.
  std::string at_bad_end(std::int64_t step, std::int64_t bad, MetricsFile& metrics);
  /// None: none is kept, or no validation said which it is.
  std::optional<BestSaved> best() const;
  /// The path of the last checkpoint, as --output tells it; empty: none.
  std::string last() const;

 private:
  /// When a failure of a save is heard of, and what that entails.
  enum class Heard {
    OnTheWay,       // a save is tried again when the next is due; the run ends if too many failed
    BeforeTheLast,  // training has ended: there is one more try, however many failed
    OfTheLast,      // that try failed: the run ends
  };
  /// Takes note of what became of a save on the way.
  void hear(const std::optional<SaveResult>& result);
  void settle(const std::optional<SaveResult>& result, Heard when);
  void link_best(std::int64_t step, const std::string& path);
  /// A step was trained from the last checkpoint.
  void note_trained();
  KeptCheckpoints kept() const;
  std::string how_to_go_on() const;
  CheckpointRecord record() const;
  bool is_here(const std::string& checkpoint) const;

  const RunConfig& config_;
  const std::vector<TrainCallback*>& callbacks_;
  OutputLock& lock_;
  RankGroup& group_;
  const std::string folder_;  // of checkpoints, wherever the working folder is by now
  CheckpointWriter writer_;
  std::function<CheckpointRecord()> record_;
  std::function<bool()> ended_;
  std::int64_t saved_ = -1;           // the step of the last checkpoint in the run's folder
  std::string checkpoint_;            // the path of the last, wherever it is
  std::string left_;                  // kRecordedLeft
  std::int64_t failed_ = 0;           // saves, in a row
  std::int64_t trained_ = -1;         // the last step that was not skipped
  bool skipping_ = false;             // the last step was
  std::string trained_from_;          // names the checkpoint
  std::vector<std::string> damaged_;  // names of those that were passed over
  std::optional<BestCheckpoint> best_;
};

}  // namespace tessera
