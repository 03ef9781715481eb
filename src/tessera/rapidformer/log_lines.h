#pragma once
/// Lines of a run as Megatron-LM prints them.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/apps/training.h"
#include "tessera/launch/console.h"

namespace tessera {

/// " iteration        1/      10 | consumed samples:            8 | elapsed time per iteration
/// (ms): 12.3 | learning rate: 0.000E+00 | global batch size:     8 | lm loss: 1.078123E+01 | loss
/// scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:
/// 0 |", for every `interval` iterations and at the end: losses are means over those that were not
/// skipped, the learning rate and the norm are those of the last one.
class LogLines : public RunDisplay {
 public:
  LogLines(Console& console, const RunConfig& config);

  void on_start(const RunStart& start) override;
  void on_step(const StepRecord& record) override;
  void on_valid(std::int64_t step, double loss, const NamedMeans& means) override;
  void on_eval(const EvalRecord& record) override;
  void on_test(const TestRecord& record) override;
  void on_sample(std::int64_t step, const std::string& sample) override;
  void on_save(std::int64_t step, const std::string& path) override;
  void on_profile(const std::string& path, const std::string& table) override;
  void on_notice(const std::string& notice) override;
  /// The line of iterations that fill no interval, where the run ends before its last one.
  void finish() override;

 private:
  void line(const std::string& text);
  /// Between two lines of dashes.
  void framed_line(const std::string& text);
  void print_interval(const StepRecord& last);

  Console& console_;
  std::int64_t interval_, batch_, micro_batches_;
  std::int64_t steps_ = 0;                         // of the run
  std::int64_t done_ = 0, skipped_ = 0, nan_ = 0;  // since the last line
  double seconds_ = 0;
  NamedMeans sums_;
  StepRecord last_;
};

}  // namespace tessera
