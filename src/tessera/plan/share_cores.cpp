#include "tessera/plan/share_cores.h"

#include <algorithm>
#include <map>

namespace tessera {

namespace {

/// The work that a stage does until a time, where all that work at that time are equally fast.
class Progress {
 public:
  Progress(const std::vector<Spans>& played, double sharing) {
    std::map<double, int> changes;  // of how many stages work
    for (const Spans& spans : played) {
      for (const Span& span : spans) ++changes[span.begin], --changes[span.end];
    }
    const auto stages = static_cast<double>(played.size());
    double done = 0, speed = 0, time = 0;
    int working = 0;
    for (const auto& [at, change] : changes) {
      done += speed * (at - time);
      working += change;
      speed = working == 0 ? 0 : std::min(sharing, stages / working);
      time = at;
      done_.emplace_hint(done_.end(), at, done);
    }
  }

  double between(const Span& span) const { return done_.at(span.end) - done_.at(span.begin); }

 private:
  std::map<double, double> done_;  // by time
};

}  // namespace

std::vector<Spans> play_on_cores(const Pipeline& pipeline, const PlayOptions& options,
                                 std::int64_t sharing) {
  std::vector<Spans> out = pipeline.play(options);
  if (sharing <= 1 || out.size() <= 1) return out;
  // The speed of an action depends on what is played beside it, and that on the speeds.
  constexpr int kRounds = 12;
  std::map<Action, double> slower;
  PlayOptions shared = options;
  shared.cost = [&](const Action& action) {
    const auto found = slower.find(action);
    return options.cost(action) * (found == slower.end() ? 1 : found->second);
  };
  for (int round = 0; round < kRounds; ++round) {
    const Progress progress(out, static_cast<double>(sharing));
    for (std::size_t s = 0; s < out.size(); ++s) {
      for (std::size_t i = 0; i < out[s].size(); ++i) {
        const double seconds = out[s][i].end - out[s][i].begin;
        if (seconds <= 0) continue;
        double& of = slower.try_emplace(pipeline.schedule().stages[s][i], 1.0).first->second;
        of = (of + seconds / progress.between(out[s][i])) / 2;
      }
    }
    out = pipeline.play(shared);
  }
  return out;
}

}  // namespace tessera
