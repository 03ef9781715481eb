#pragma once
/// `tessera doctor --calibrate`: this machine as a machine file.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/launch/ranks.h"

namespace tessera {

/// A run that was measured and, without knowing that, predicted.
struct CalibrationRun {
  std::string flags;
  double measured = 0, predicted = 0;  // seconds of a step
};

struct Calibration {
  Machine machine;
  std::vector<CalibrationRun> runs;  // by which the weights were fitted
  std::string comment;               // what was measured, on what and when, in lines
};

/// Measures kernels, collectives and copies on all ranks of `config` at once, then some short runs.
/// Rank 0 has the result.
Calibration calibrate(const RunConfig& config, Communicator* launched, Console& console);

/// The machine file, with its comment and the runs as comments.
std::string to_text(const Calibration& calibration);

/// Of `tessera doctor --calibrate FILE`: measures on launched ranks, or on threads, and writes
/// FILE.
int calibrate_command(const RanksCommand& command, const std::string& file, Console& console);

}  // namespace tessera
