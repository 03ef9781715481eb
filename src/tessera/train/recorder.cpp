#include "tessera/train/recorder.h"

#include "tessera/files/file.h"
#include "tessera/runtime/trace.h"

namespace tessera {

Recorder::Recorder(std::string path, std::int64_t steps, const Backend& backend)
    : path_(std::move(path)), steps_(steps) {
  // Without a commit it leaves nothing: told now, not after the steps.
  const AtomicFile can_be_written(path_);
  profile_.device = backend.name();
  profile_.rates = measure_rates(backend.device());
}

void Recorder::reserve(const Engine& engine, std::string_view program) {
  const auto steps = static_cast<std::size_t>(steps_);
  profile_.steps.reserve(steps);
  profile_.calls.reserve(steps * engine.calls_of_run(program));
}

void Recorder::step_done(std::int64_t step, Clock::time_point begin, Clock::time_point end) {
  const auto ns = [](Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  };
  if (recording()) profile_.steps.push_back({step, ns(begin), ns(end)});
  ++seen_;
}

std::string Recorder::write() const {
  write_atomically(path_, trace_json(profile_));
  return table(profile_);
}

}  // namespace tessera
