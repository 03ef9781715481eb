#pragma once
/// What comes from the error stream of what starts the ranks: their lines, and mpirun's own.

#include <string>
#include <string_view>

namespace tessera {

/// Passes the ranks' lines on and keeps mpirun's for the one sentence in which a launch that failed
/// is reported: it says at length what the ranks say better, if they can. Where several ranks find
/// the same failure at once, the first that reports it is passed on.
class LauncherWords {
 public:
  /// Without mpirun every line is a rank's.
  explicit LauncherWords(bool of_mpirun = true) : of_mpirun_(of_mpirun) {}
  /// What of `bytes`, and of a line that began before, is the ranks': whole lines.
  std::string pass(std::string_view bytes);
  /// The line that nothing has ended.
  std::string rest() { return line_.empty() ? line_ : pass("\n"); }
  /// True once a rank has said why the run fails.
  bool error_seen() const { return error_seen_; }
  /// mpirun's own, on one line; cut where it is long.
  std::string own() const;

 private:
  bool is_own(const std::string& line);

  bool of_mpirun_;
  std::string line_, own_;
  bool in_block_ = false;  // between two lines of dashes
  bool error_seen_ = false;
  bool repeats_ = false;  // an error after the first, and the lines that belong to it
};

/// "rank 1, on node3," of mpirun's words about a rank that a signal ended; empty: they say nothing
/// of the kind.
std::string rank_that_died(const std::string& words);

}  // namespace tessera
