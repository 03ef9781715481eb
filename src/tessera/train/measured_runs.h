#pragma once
/// Runs of programs whose first ones are measured.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tessera/train/metrics.h"
#include "tessera/train/rank_group.h"

namespace tessera {

/// Runs programs of a group. The first runs of each are the proof that the plan is the truth: what
/// they leave of a pattern in the arena is what was used (RankGroup::most_used_bytes).
class MeasuredRuns {
 public:
  explicit MeasuredRuns(RankGroup& group) : group_(group) {}

  RankGroup& group() { return group_; }
  /// Runs a program whose batch `fill` writes.
  template <typename Fill>
  void run(const char* program, const Fill& fill, std::vector<CallTime>* times = nullptr) {
    std::size_t& runs = runs_[program];
    if (runs == kMeasured) return group_.run(program, fill, {.times = times});
    const std::int64_t peak = peak_rss_bytes();
    UsedBytes used;
    group_.run(program, fill, {.times = times, .used_bytes = &used});
    raised_bytes_ += peak_rss_bytes() - peak;
    ++runs;
  }
  /// By how much those that were measured raised the most memory that the process has held.
  std::int64_t raised_bytes() const { return raised_bytes_; }

 private:
  static constexpr std::size_t kMeasured = 2;  // of each program, each with a pattern of its own

  RankGroup& group_;
  std::map<std::string, std::size_t> runs_;  // of each program, until they are enough to measure
  std::int64_t raised_bytes_ = 0;
};

}  // namespace tessera
