#pragma once
/// The room `bench`: what turns of a measurement tell, and where contestants stand.
/// For: `tessera bench`, in processes that take turns, so that a busy machine is busy for all of
/// them.
/// Not for: single kernels (the programs of the folder bench/).
///
/// One turn of a contestant: a short training run in a process of its own, and what it tells.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/train/callbacks.h"

namespace tessera {

/// How a run is measured: some steps warm up, the others are timed.
struct TurnLength {
  std::int64_t warmup = 2, steps = 10;
  std::int64_t all() const { return warmup + steps; }
};

/// What a turn told. One that failed, or did not fit, has no steps.
struct Turn {
  std::vector<double> step_seconds;  // of the timed steps
  std::vector<double> losses;        // of all steps; none of a program that tells none
  std::vector<double> rates;         // learning rates of all steps; none of a peer
  std::int64_t skipped = 0;          // of all steps: those that changed no parameter
  std::int64_t parameters = 0, tokens_per_step = 0, devices = 1;
  double model_flops = 0;               // of a step, without recomputing; 0: not told
  std::int64_t planned_bytes = 0;       // of the device that has most, on itself
  std::int64_t planned_host_bytes = 0;  // the same, on the host
  std::int64_t planned_file_bytes = 0;  // the same, in a file
  std::int64_t peak_bytes = 0;          // resident memory of the process, shared out over devices
  std::vector<std::string> kernels;     // that do most of the FLOPs; the first does most
  double seconds = 0;                   // from its start to its end
  double others = 0;          // share of the machine's cores that other programs had meanwhile
  int code = 0;               // of its end
  bool planned_only = false;  // by choice, or as less memory is free
  std::string failure;        // why it did not come to its end; empty: it did

  bool measured() const { return failure.empty() && !step_seconds.empty(); }
};

/// Writes, as lines, what a run tells. Made in the process of the run.
/// on_start throws where the planned memory is not free, or only the plan is asked for.
class TurnWriter : public TrainCallback {
 public:
  explicit TurnWriter(std::function<void(const std::string& line)> write, bool only_plan = false)
      : write_(std::move(write)), only_plan_(only_plan) {}
  void on_start(const RunStart& start) override;
  void on_step(const StepRecord& record) override;
  /// The last line. An exit code of 0 says that all went well.
  void end(int code, const std::string& message);

 private:
  std::function<void(const std::string&)> write_;
  const bool only_plan_;
  std::string why_not_;  // only planned; empty: it is measured
};

/// Reads those lines, one by one, and of other programs whatever they print: a step is
/// {"seconds": S} or {"seconds": S, "loss": L}, what is no JSON object is passed over.
class TurnReader {
 public:
  explicit TurnReader(const TurnLength& length) : length_(length) {}
  void read(const std::string& line);
  std::int64_t steps_done() const { return done_; }
  /// What was told. A failure: `ending`, unless it is empty; what was told of one; or that steps
  /// are missing.
  Turn finish(const std::string& ending = "") &&;
  /// Of a turn that was cut short: the steps that were timed until then, and no failure.
  Turn finish_cut() &&;

 private:
  TurnLength length_;
  Turn turn_;
  std::int64_t done_ = 0;
};

}  // namespace tessera
