#pragma once
/// The checkpoint with the lowest validation loss of a run: --keep-best.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/train/metrics.h"

namespace tessera {

/// The link to it, in OUTPUT/checkpoints.
inline constexpr const char* kBestLink = "best";

class BestCheckpoint {
 public:
  /// A run that goes on keeps the best of before: of the checkpoints on its way to the one named
  /// `from` (empty: it goes on from none in `folder`), that with the lowest validation loss in
  /// `metrics`. If the link names another, because the run was killed before it was changed or the
  /// save of a better one failed, it is changed now, with a notice. Where the metrics know of none,
  /// the one that is linked stays until a validation.
  BestCheckpoint(std::string folder, const KeptMetrics& metrics, const std::string& from,
                 std::vector<std::string>& notices);

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
