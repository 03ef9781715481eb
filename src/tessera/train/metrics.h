#pragma once
/// metrics.jsonl and summary.json: what other programs read. docs/metrics.md has their contract.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/train/callbacks.h"

namespace tessera {

/// Nine significant digits, which give an f32 back; null for inf and nan, which JSON lacks.
std::string json_number(double value);

/// What a run that goes on from a step keeps of its metrics.
struct KeptMetrics {
  std::string lines;
  std::optional<double> train_loss, valid_loss;  // the last of each kind
  std::int64_t valid_step = -1;                  // -1: none
  friend bool operator==(const KeptMetrics&, const KeptMetrics&) = default;
};

/// Keeps the lines up to `step`; later ones, and those that are torn or not ours, go.
KeptMetrics keep_metrics(std::string_view lines, std::int64_t step);

/// The metrics of a run, one line at a time, each flushed: a killed run loses no line.
class MetricsFile {
 public:
  /// Keeps the lines of an existing file up to `step`; later ones, and a torn last line, go.
  /// Errors: Fault::Resource.
  MetricsFile(const std::string& path, std::int64_t step);

  void train(const StepRecord& record);
  void valid(std::int64_t step, double loss);

  /// The last of each kind, from before a resume too.
  std::optional<double> train_loss() const { return last_.train_loss; }
  std::optional<double> valid_loss() const { return last_.valid_loss; }
  std::int64_t valid_step() const { return last_.valid_step; }  // -1: none

 private:
  void write(const std::string& line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  KeptMetrics last_;  // without its lines
};

struct Summary {
  std::int64_t steps = 0;
  std::optional<double> train_loss, val_loss;
  double seconds = 0, tokens_per_s = 0;
  std::int64_t parameters = 0, planned_peak_bytes = 0, lower_bound_bytes = 0, peak_rss_bytes = 0;
  std::optional<std::int64_t> measured_peak_bytes;  // none: no step ran, and the key is absent
  std::int64_t skipped_steps = 0;
};

std::string to_json(const Summary& summary);

/// The most memory that this process has held, of any kind.
std::int64_t peak_rss_bytes();

}  // namespace tessera
