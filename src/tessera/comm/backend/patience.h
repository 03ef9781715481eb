#pragma once
/// How a rank waits for others.

#include <chrono>

namespace tessera::backend {

using Clock = std::chrono::steady_clock;

/// Waits of growing length: pauses (200: another core answers in less; none where ranks outnumber
/// cores, because the awaited one may need this core), yields for 2 ms (another
/// thread of this core), then naps of 100 us, so that long waits leave the core to others.
class Patience {
 public:
  explicit Patience(int spins) : left_(spins) {}
  void wait();
  /// True where it is time to look for more than the one awaited thing.
  bool waits_long() const { return left_ < 0; }
  /// Since the first yield.
  Clock::duration waited() const { return waits_long() ? now_ - since_ : Clock::duration{}; }

  bool saw_end = false;  // the awaited rank had ended; it may have done its part just before

 private:
  int left_;  // pauses; -1: it yields
  Clock::time_point since_, now_;
};

}  // namespace tessera::backend
