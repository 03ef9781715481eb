#include "tessera/comm/backend/patience.h"

#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <thread>

namespace tessera::backend {

namespace {
void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace

Pace pace_of(std::int64_t ranks, std::int64_t cores, int spins) {
  constexpr std::int64_t kPerRank = 25;  // us of a nap, by ranks that share the core
  constexpr std::chrono::microseconds kLongest{10'000};
  Pace out;
  if (ranks <= cores) out.spins = spins;
  const std::chrono::microseconds nap(kPerRank * ranks / std::max<std::int64_t>(cores, 1));
  out.nap = std::clamp(nap, out.nap, kLongest);
  return out;
}

void Patience::wait() {
  constexpr auto kAwake = std::chrono::milliseconds(2);
  if (left_ > 0) {
    --left_;
    pause_core();
    return;
  }
  if (left_ == 0) --left_, since_ = Clock::now();
  now_ = Clock::now();
  if (now_ - since_ < kAwake) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(nap_);
  }
}

}  // namespace tessera::backend
