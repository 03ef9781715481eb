#pragma once
/// What `tessera bench` was asked to measure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/flags.h"
#include "tessera/bench/turn.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// The variable that tells a program beside how many steps to make.
inline constexpr const char* kStepsName = "TESSERA_STEPS";

/// One of the runs to measure.
struct MeasuredRun {
  std::string name, flags;   // as it was written; those of tessera train beside what all have
  RunConfig config;          // short, and without a trace; its data may be open
  bool same_samples = true;  // as the first run: its losses can be compared
};

/// Any program that tells its steps as a turn does (bench/turn.h).
struct ProgramBeside {
  std::string name, command;  // of a shell
};

struct BenchRequest {
  std::vector<MeasuredRun> runs;
  std::vector<ProgramBeside> beside;
  std::vector<std::string> left_out;  // sets of --all that this run cannot have, and why
  std::vector<std::string> notices;
  TurnLength length;
  std::int64_t turns = 3;
  bool as_json = false;
  bool planned = false;          // nothing is trained
  std::string page, results;     // files; empty: none
  std::string python;            // of peers; empty: none
  std::optional<Machine> peaks;  // of whose devices MFU is told
};

/// Flags of the command's own.
std::vector<Flag> bench_flags();

/// What is wrong is added to `problems`, all of it: nothing is measured before all can be.
BenchRequest read_bench_request(ParsedFlags& parsed, const OwnFamilies& families,
                                Problems& problems);

}  // namespace tessera
