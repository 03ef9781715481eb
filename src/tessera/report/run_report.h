#pragma once
/// What the folder of a run tells of it, as `tessera report` shows it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/report/metric_series.h"

namespace tessera {

/// A field with another value than the default of its family.
struct ChangedField {
  std::string name, value, standard;
};

/// A line of the table that --profile recorded.
struct RecordedKernel {
  std::string kernel, op, block;
  std::int64_t calls = 0;
  double seconds = 0, share = 0, floor_seconds = 0;  // of a step
};

struct RecordedCheckpoint {
  std::string name;
  std::int64_t bytes = 0;
  bool best = false;
};

struct RunReport {
  std::string name;  // the folder, as it was given
  std::vector<MetricSeries> series;
  std::vector<std::pair<std::string, std::string>> facts;    // what it is, and its value
  std::vector<std::pair<std::string, std::int64_t>> memory;  // bytes of rank 0, by component
  bool configured = false;                                   // its configuration is known
  std::vector<ChangedField> changed;                         // in the order of the fields
  std::vector<std::string> notices;                          // of the last invocation
  std::vector<RecordedCheckpoint> checkpoints;               // oldest first
  std::vector<RecordedKernel> kernels;                       // the slowest first
  std::vector<std::string> remarks;  // what the folder should tell and does not
};

/// Reads the folder `run`. `config` is what its config.toml says; none: it has none, or
/// one that cannot be read.
/// Errors: Fault::Usage: no such folder, or no line of metrics in it.
RunReport read_run(const std::string& run, const std::optional<RunConfig>& config);

/// A page that needs nothing else: the facts, curves of all runs in one drawing for each metric,
/// memory, configurations, kernels, notices and checkpoints. `runs` is not empty.
std::string to_html(const std::vector<RunReport>& runs);

}  // namespace tessera
