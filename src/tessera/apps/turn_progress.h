#pragma once
/// How far the turns of `tessera bench` are, and how long they will still take.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/bench/turn.h"
#include "tessera/launch/console.h"

namespace tessera {

/// Written to the error stream: what is measured goes to the other one. On a terminal one line that
/// is written over; else a line for each turn.
class TurnProgress {
 public:
  TurnProgress(Console& console, std::vector<std::string> names, std::int64_t turns,
               const TurnLength& length);
  /// A turn of the contestant of that index begins.
  void begin(std::int64_t turn, std::size_t contestant);
  void step(std::int64_t steps_done);
  void end(const Turn& turn);
  /// Leaves the line. Returns the seconds since this was made.
  double finish();

 private:
  using Clock = std::chrono::steady_clock;
  double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  double seconds_left() const;
  void show(const std::string& line, bool stays);

  Console& console_;
  const std::vector<std::string> names_;
  const std::int64_t turns_;
  const TurnLength length_;
  const Clock::time_point begin_ = Clock::now();
  std::vector<double> seconds_;     // of a turn of each, where one is known; 0: not yet
  std::vector<std::int64_t> left_;  // turns of each that have not ended
  std::int64_t turn_ = 0;
  std::size_t at_ = 0;
  double turn_begin_ = 0;
  bool drawn_ = false;
};

}  // namespace tessera
