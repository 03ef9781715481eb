#pragma once
/// The checkpoint with the lowest validation loss of a run: --keep-best.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/train/metrics.h"

namespace tessera {

/// The link to it, in OUTPUT/checkpoints.
inline constexpr const char* kBestLink = "best";

/// A text in a checkpoint's record: what its run had left behind in the folder, a line for each
/// time that it went on from another checkpoint than the newest. "step-00000004 step-00000008":
/// those after the first, up to the second, in the order of StepName.
inline constexpr const char* kRecordedLeft = "left";
/// That text for a run that goes on from `from`, in its folder; empty: it has left nothing behind.
/// Errors: Fault::Resource.
std::string left_behind(const Checkpoint& from);

class BestCheckpoint {
 public:
  /// A run that goes on keeps the best of before: of the checkpoints on its way to the one named
  /// `from` (empty: it goes on from none in `folder`), but those it `left`, that with the lowest
  /// validation loss in `metrics`. If the link names another, because the run was killed before it
  /// was changed or the save of a better one failed, it is changed now, with a notice. Where the
  /// metrics know of none, the one that is linked stays until a validation.
  BestCheckpoint(std::string folder, const KeptMetrics& metrics, const std::string& from,
                 const std::string& left, std::vector<std::string>& notices);

  /// A validation at `step`: its state is the best so far, or not.
  void validated(std::int64_t step, double loss);
  /// True if the state of `step` is the best and is not saved yet.
  bool wants(std::int64_t step) const { return found_ == step; }
  /// True if the state of some step is.
  bool waits() const { return found_ >= 0; }
  /// The save of `step` failed: the best is what it was before.
  void not_saved(std::int64_t step);
  /// The state of `step` is saved at `path`, in the folder: if it is the best, the link is changed
  /// to it. Returns the problem if that fails.
  std::string saved(std::int64_t step, const std::string& path);
  /// The name of the checkpoint that has to stay; empty: none.
  const std::string& name() const { return name_; }

 private:
  /// Lets the link name the best; the problem if that fails.
  std::string link() const;

  std::string folder_, name_;
  std::optional<double> loss_;  // of the one that is linked; none: not known
  std::int64_t found_ = -1;     // the step of a better one, until it is saved
  double found_loss_ = 0;
};

}  // namespace tessera
