#pragma once
/// Where contestants stand after their turns: medians, spreads, and ratios to the first of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/bench/turn.h"

namespace tessera {

/// A contestant and its turns; those of one index were taken one after the other.
struct Contestant {
  std::string name;          // "bf16+zero-1"
  std::string flags;         // "--bf16 --zero-stage 1", beside those of all
  std::int64_t batch = 1;    // samples of a step
  bool same_samples = true;  // as the first contestant
  std::vector<Turn> turns;
  double peak_flops_per_s = 0;  // of one device, in the floats of this contestant; 0: not known
};

struct Range {
  double low = 0, high = 0;
};

/// How far the curve of losses is from that of the first contestant.
struct LossDistance {
  double mean = 0, largest = 0;  // of the differences of single steps, without their signs
  double relative = 0;           // the largest, each over the first contestant's loss
  double last = 0;               // of the mean of the last tenth of all steps, with its sign
};

/// Ratios of turns that lie further apart than this tell of the machine, not of the programs: as a
/// part of their median. Of five and more the middle half is looked at, which some disturbed ones
/// do not widen.
inline constexpr double kMostDisagreement = 0.15;

struct Standing {
  std::string name, flags;
  std::optional<double> step_seconds;  // median of all timed steps; none: it was not measured
  Range step_range;                    // the shortest and the longest step
  std::optional<double> samples_per_s, tokens_per_s;  // at the median
  /// Samples per second over those of the first contestant: the median of the ratios of turns.
  /// None: nothing to compare, or turns disagree.
  std::optional<double> ratio;
  std::optional<Range> ratio_range;  // over turns
  bool disagrees = false;
  /// utilization() of the peaks of its devices, at the median. Of one that tells no FLOPs, such as a
  /// peer, by those of the first contestant, whose model it trains. None: a peak is not known.
  std::optional<double> mfu;
  std::int64_t peak_bytes = 0, planned_bytes = 0, planned_host_bytes = 0,
               planned_file_bytes = 0;  // of a device
  std::optional<double> memory_ratio;   // of peak_bytes
  std::vector<double> losses;           // of the first turn
  std::int64_t skipped = 0;             // steps of that turn
  std::optional<LossDistance> distance;
  double others = 0;  // most of the machine's cores that other programs had in a turn
  std::int64_t devices = 1, parameters = 0, turns = 0;  // turns that were measured
  std::vector<std::string> kernels;
  bool planned_only = false;
  std::string failure;
};

/// In the order of `contestants`; ratios and distances are to the first.
std::vector<Standing> standings(const std::vector<Contestant>& contestants);

}  // namespace tessera
