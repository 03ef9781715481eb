#pragma once
/// Records the steps that --profile asks for, and writes what it saw.

#include <chrono>
#include <string>

#include "tessera/runtime/backend.h"
#include "tessera/runtime/profile.h"

namespace tessera {

class Recorder {
 public:
  /// Steps that warm caches and threads up before the first that is recorded.
  static constexpr std::int64_t kWarmUp = 2;

  /// Measures what the backend's device can do. Errors: Fault::Resource: `path` cannot be written.
  Recorder(std::string path, std::int64_t steps, const Backend& backend);

  /// Makes room for all that will be recorded: a step allocates nothing.
  void reserve(const Engine& engine, std::string_view program);

  /// Where the calls of the step at hand go; nullptr where it is not recorded.
  std::vector<CallTime>* calls_of_step() { return recording() ? &profile_.calls : nullptr; }
  using Clock = std::chrono::steady_clock;
  void step_done(std::int64_t step, Clock::time_point begin, Clock::time_point end);

  bool complete() const { return static_cast<std::int64_t>(profile_.steps.size()) == steps_; }
  /// Steps that were done, recorded or not.
  std::int64_t seen() const { return seen_; }
  bool empty() const { return profile_.steps.empty(); }
  /// Writes the trace; returns the table. Not where nothing was recorded.
  std::string write() const;

 private:
  bool recording() const { return seen_ >= kWarmUp && !complete(); }

  std::string path_;
  std::int64_t steps_ = 0, seen_ = 0;
  Profile profile_;
};

}  // namespace tessera
