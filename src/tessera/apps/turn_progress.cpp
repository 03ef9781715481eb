#include "tessera/apps/turn_progress.h"

#include <algorithm>
#include <utility>

#include "tessera/apps/progress.h"
#include "tessera/base/format.h"
#include "tessera/base/median.h"
#include "tessera/base/text.h"

namespace tessera {

TurnProgress::TurnProgress(Console& console, std::vector<std::string> names, std::int64_t turns,
                           const TurnLength& length)
    : console_(console),
      names_(std::move(names)),
      turns_(turns),
      length_(length),
      seconds_(names_.size(), 0.0),
      left_(names_.size(), turns) {}

/// As turns took that have ended; of contestants without one, as the others on average.
double TurnProgress::seconds_left() const {
  double known = 0, turns_known = 0;
  for (const double seconds : seconds_) {
    known += seconds;
    turns_known += seconds > 0 ? 1 : 0;
  }
  if (turns_known == 0) return 0;
  double out = 0;
  for (std::size_t i = 0; i < names_.size(); ++i)
    out += static_cast<double>(left_[i]) * (seconds_[i] > 0 ? seconds_[i] : known / turns_known);
  const double mine = seconds_[at_] > 0 ? seconds_[at_] : known / turns_known;
  return std::max(0.0, out - std::min(now() - turn_begin_, mine));
}

void TurnProgress::begin(std::int64_t turn, std::size_t contestant) {
  turn_ = turn, at_ = contestant, turn_begin_ = now();
  if (console_.terminal) step(0);
}

void TurnProgress::step(std::int64_t steps_done) {
  if (!console_.terminal) return;
  const double left = seconds_left();
  show(text("turn ", turn_ + 1, " of ", turns_, "  ", names_[at_], "  step ", steps_done, "/",
            length_.all(), left > 0 ? text("  ", clock_text(left), " left") : ""),
       false);
}

void TurnProgress::end(const Turn& turn) {
  --left_[at_];
  seconds_[at_] = std::max(turn.seconds, 1e-3);
  if (!turn.failure.empty()) left_[at_] = 0;  // it is not tried again
  turn_begin_ = now();
  const double left = seconds_left();
  const std::string shown = turn.measured()
                                ? text(format("%.4g", median(turn.step_seconds)), " s a step")
                                : text("not measured: ", turn.failure);
  show(text("turn ", turn_ + 1, " of ", turns_, "  ", names_[at_], "  ", shown,
            left > 0 ? text("  ", clock_text(left), " left") : ""),
       true);
}

void TurnProgress::show(const std::string& line, bool stays) {
  if (drawn_) console_.err << "\r\x1b[K";
  const bool cut = console_.terminal && line.size() >= static_cast<std::size_t>(console_.columns);
  console_.err << (cut ? line.substr(0, static_cast<std::size_t>(console_.columns) - 1) : line);
  if (stays) console_.err << "\n";
  console_.err << std::flush;
  drawn_ = !stays;
}

double TurnProgress::finish() {
  if (drawn_) console_.err << "\n" << std::flush;
  drawn_ = false;
  return now();
}

}  // namespace tessera
