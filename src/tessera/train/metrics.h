#pragma once
/// metrics.jsonl and summary.json: what other programs read. docs/reference/files.md has their contract.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/appended_file.h"
#include "tessera/plan/plan.h"
#include "tessera/train/callbacks.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/outside_arena.h"

namespace tessera {

/// Nine significant digits, which give an f32 back; null for inf and nan, which JSON lacks.
std::string json_number(double value);

/// A line of metrics.jsonl, without its end.
std::string metrics_line(const StepRecord& record);
std::string metrics_line(const EvalRecord& record);
std::string metrics_line(const TestRecord& record);
/// Of a validation.
std::string metrics_line(std::int64_t step, double loss, const NamedMeans& means);

/// A line of metrics.jsonl, of a step or of a validation: nan for a loss that is null or of a step
/// that was skipped.
struct LossLine {
  std::int64_t step = 0;
  double loss = 0;
  bool valid = false;
};
/// Those of all steps and validations; lines that are torn or not ours are passed over.
std::vector<LossLine> loss_lines(std::string_view lines);

/// What a run that goes on from a step keeps of its metrics.
struct KeptMetrics {
  std::string lines;
  std::optional<double> train_loss, valid_loss;  // the last of each kind
  std::int64_t valid_step = -1, eval_step = -1;  // -1: none
  std::map<std::int64_t, double> valid_losses;   // of all validations, by step
  friend bool operator==(const KeptMetrics&, const KeptMetrics&) = default;
};

/// Keeps the lines up to `step`; later ones, and those that are torn or not ours, go, and so do
/// those of a test: there is one at the end of a run.
KeptMetrics keep_metrics(std::string_view lines, std::int64_t step);

/// The metrics of a run, one line at a time, each written at once: a killed run loses no line. What
/// a full disk does not take is kept and written with the next line.
class MetricsFile {
 public:
  /// Keeps the lines of an existing file up to `step`; later ones, and a torn last line, go.
  /// Errors: Fault::Resource.
  MetricsFile(const std::string& path, std::int64_t step, FileCalls calls = {});
  void train(const StepRecord& record);
  void valid(std::int64_t step, double loss, const NamedMeans& means = {});
  /// Once for a step: it may be judged again where a run goes on.
  void eval(const EvalRecord& record);
  void test(const TestRecord& record);
  AppendedFile& file() { return *file_; }

  /// The last of each kind, from before a resume too.
  std::optional<double> train_loss() const { return last_.train_loss; }
  std::optional<double> valid_loss() const { return last_.valid_loss; }
  /// Without its lines; its validations are those from before the run went on.
  const KeptMetrics& kept() const { return last_; }
  std::int64_t valid_step() const { return last_.valid_step; }  // -1: none

 private:
  std::optional<AppendedFile> file_;  // once that of an earlier run is cut
  KeptMetrics last_;                  // without its lines
};

struct Summary {
  std::int64_t steps = 0;
  std::string backend;       // Backend::name of accelerators; empty: processors
  std::string isa;           // the level that kernels used; empty where there are none
  std::string f32_products;  // Device::f32_products
  std::optional<double> train_loss, val_loss;
  double seconds = 0, tokens_per_s = 0;
  double flops_per_step = 0, recomputed_flops_per_step = 0;  // of all devices
  double product_flops_per_s = 0;                            // of one
  std::optional<double> mfu = 0;                             // utilization(); 0: no step ran
  std::int64_t parameters = 0, planned_peak_bytes = 0, lower_bound_bytes = 0, peak_rss_bytes = 0;
  MemoryChoice choice;               // what was done to take so much
  std::int64_t save_copy_bytes = 0;  // beside the arena
  HostUse planned_host;
  /// None: no step ran, and the keys are absent.
  std::optional<std::int64_t> measured_peak_bytes, measured_host_bytes;
  MemoryUse memory;  // of rank 0, of a training step
  std::int64_t devices = 1;
  std::string mesh;                  // "dp=2 tp=2"; empty: one device
  std::vector<std::string> notices;  // of this invocation
  std::int64_t huge_page_bytes = 0;
  OutsideArena outside;
  std::map<std::string, std::int64_t> sent;  // bytes per training step of one device, by axes
  std::int64_t skipped_steps = 0;
};

std::string to_json(const Summary& summary);

/// The most memory that this process has held, of any kind; and what it holds now.
std::int64_t peak_rss_bytes();
std::int64_t resident_bytes();

}  // namespace tessera
