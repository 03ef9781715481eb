#pragma once
/// The calls of a region in time: the device on one side, links on the other.

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "tessera/plan/predict.h"

namespace tessera {

/// A transfer or copy that has not been waited for.
struct OpenTransfer {
  double end = 0;  // without overlap: how long it takes
  std::size_t part = 0;
};

/// Where a stage is in time. Links: by bit of Machine::levels_of, then to the host and from it.
struct StageClock {
  double now = 0;
  std::array<double, 8> free{};               // when links are
  std::map<std::int32_t, OpenTransfer> open;  // by ticket
  PartSeconds exposed{}, whole{};
};

/// The calls of one region of a plan, priced once.
class RegionPlayer {
 public:
  RegionPlayer(const RegionPlan& region, const ProgramPlan& program, const Mesh& mesh,
               const Machine& machine);

  /// Advances `clock` by the calls of one micro-batch; in Begin and Update by all calls.
  void play(StageClock& clock, std::int64_t microbatch) const;
  /// The calls before the first that waits for a message, and those from there on.
  void play_alone(StageClock& clock) const { play(clock, 0, 0, told_); }
  void play_told(StageClock& clock) const { play(clock, 0, told_, steps_.size()); }
  bool is_told() const { return told_ < steps_.size(); }

 private:
  struct Step {
    enum class Kind : std::uint8_t { Kernel, Start, Wait } kind = Kind::Kernel;
    When when = When::Always;
    std::int32_t ticket = -1;
    double seconds = 0;
    std::size_t part = 0;
    unsigned links = 0;  // that it uses, as bits
  };
  void play(StageClock& clock, std::int64_t microbatch, std::size_t begin, std::size_t end) const;
  void run(StageClock& clock, const Step& step) const;

  std::int64_t microbatches_ = 1;
  bool overlap_ = false, in_loop_ = false;
  std::vector<Step> steps_;
  std::size_t told_ = 0;  // the first step that waits for a message
};

}  // namespace tessera
