#include "tessera/comm/backend/patience.h"

#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

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
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace tessera::backend
