#include "tessera/launch/interrupt.h"

#include <signal.h>

#include <atomic>

namespace tessera {

namespace {

// A signal handler is handed nothing, so these are global.
std::atomic<bool> interrupted = false;
struct sigaction before_interrupts = {};

extern "C" void note_interrupt(int) { interrupted = true; }

}  // namespace

CaughtInterrupt::CaughtInterrupt() {
  interrupted = false;
  sigaction(SIGINT, nullptr, &before_interrupts);
  caught_ = before_interrupts.sa_handler != SIG_IGN;
  if (!caught_) return;
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

CaughtInterrupt::~CaughtInterrupt() {
  if (caught_) sigaction(SIGINT, &before_interrupts, nullptr);
}

bool CaughtInterrupt::asked() const { return interrupted; }

}  // namespace tessera
