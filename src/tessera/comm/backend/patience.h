#pragma once
/// How a rank waits for others.

#include <chrono>
#include <cstdint>

namespace tessera::backend {

using Clock = std::chrono::steady_clock;

/// How ranks that share cores wait: so many pauses (none where ranks outnumber cores, because the
/// awaited one may need this core), and naps of that length.
struct Pace {
  int spins = 0;
  std::chrono::microseconds nap{100};
};
/// Of `ranks` on so many cores. A nap costs about 5 us, so where many ranks share a core and all
/// but one of them wait, longer naps leave it the core: 25 us for each, 10 ms at most.
Pace pace_of(std::int64_t ranks, std::int64_t cores, int spins);

/// Waits of growing length: pauses, yields for 2 ms (another thread of this core), then naps, so
/// that long waits leave the core to others.
class Patience {
 public:
  explicit Patience(const Pace& pace) : left_(pace.spins), nap_(pace.nap) {}
  void wait();
  /// True where it is time to look for more than the one awaited thing.
  bool waits_long() const { return left_ < 0; }
  /// Since the first yield.
  Clock::duration waited() const { return waits_long() ? now_ - since_ : Clock::duration{}; }
  /// True once `limit` has passed without a sign of life of a rank that works; `signs` counts
  /// those, and is asked eight times within the limit.
  template <typename Signs>
  bool silent(Clock::duration limit, const Signs& signs) {
    if (!waits_long() || now_ < next_look_) return false;
    const bool first = next_look_ == Clock::time_point{};
    const std::uint64_t seen = signs();
    if (first || seen != signs_) quiet_since_ = first ? since_ : now_;
    signs_ = seen, next_look_ = now_ + limit / 8;
    return now_ - quiet_since_ >= limit;
  }

  bool saw_end = false;  // the awaited rank had ended; it may have done its part just before

 private:
  int left_;  // pauses; -1: it yields
  std::chrono::microseconds nap_;
  Clock::time_point since_, now_, quiet_since_, next_look_;
  std::uint64_t signs_ = 0;
};

}  // namespace tessera::backend
