#pragma once
/// What a run shows while it goes: a bar on a terminal, plain lines elsewhere.

#include <chrono>
#include <string>
#include <string_view>

#include "tessera/apps/training.h"
#include "tessera/launch/console.h"

namespace tessera {

/// "1:02:03", "2:03"
std::string clock_text(double seconds);

/// 10, 20, 40, 80, ...: so many that a run of `steps` has 40 lines at most.
std::int64_t steps_between_lines(std::int64_t steps);

class Progress : public RunDisplay {
 public:
  /// Plain lines come every `log_every` steps (0: steps_between_lines()), and for the first and the
  /// last.
  Progress(Console& console, std::int64_t log_every) : console_(console), every_(log_every) {}

  void on_start(const RunStart& start) override;
  void on_memory(const RunMemory& memory) override;
  void on_step(const StepRecord& record) override;
  void on_valid(std::int64_t step, double loss, const NamedMeans& means) override;
  void on_eval(const EvalRecord& record) override;
  void on_test(const TestRecord& record) override;
  void on_sample(std::int64_t step, const std::string& text) override;
  void on_save(std::int64_t step, const std::string& path) override;
  void on_profile(const std::string& path, const std::string& table) override;
  void on_notice(const std::string& notice) override;
  /// Ends the line of the bar.
  void finish() override;

 private:
  void line(const std::string& text);
  std::string numbers(const StepRecord& record, std::string_view gap, std::size_t room) const;
  std::string bar(std::int64_t step, std::int64_t room) const;

  Console& console_;
  std::int64_t every_;
  RunStart start_;
  double seconds_ = 0;      // per step, as of late
  std::int64_t steps_ = 0;  // seen
  bool drawn_ = false;      // a bar stands on the terminal's line
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tessera
