#pragma once
/// Runs of programs whose first ones are measured.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tessera/train/crew.h"
#include "tessera/train/metrics.h"

namespace tessera {

/// Runs programs of a crew. The first runs of each are the proof that the plan is the truth: what
/// they leave of a pattern in the arena is what was used (Crew::most_used_bytes).
class MeasuredRuns {
 public:
  explicit MeasuredRuns(Crew& crew) : crew_(crew) {}

  Crew& crew() { return crew_; }
  /// Runs a program whose batch `fill` writes.
  template <typename Fill>
  void run(const char* program, const Fill& fill, std::vector<CallTime>* times = nullptr) {
    std::size_t& runs = runs_[program];
    if (runs == kMeasured) return crew_.run(program, fill, {.times = times});
    const std::int64_t peak = peak_rss_bytes();
    UsedBytes used;
    crew_.run(program, fill, {.times = times, .used_bytes = &used});
    raised_bytes_ += peak_rss_bytes() - peak;
    ++runs;
  }
  /// By how much those that were measured raised the most memory that the process has held.
  std::int64_t raised_bytes() const { return raised_bytes_; }

 private:
  static constexpr std::size_t kMeasured = 2;  // of each program, each with a pattern of its own

  Crew& crew_;
  std::map<std::string, std::size_t> runs_;  // of each program, until they are enough to measure
  std::int64_t raised_bytes_ = 0;
};

}  // namespace tessera
