/// Requests to stop, before there is anything to save and after.

#include "tessera/apps/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tessera/apps/command.h"

namespace tessera {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

TEST(StopSignal, BeforeTheFirstStepItEndsTheProcessAtOnce) {
  for (const int signal : kSignals) {
    EXPECT_EXIT(
        {
          catch_stop_signals();
          const NothingToSave nothing;
          raise(signal);
        },
        testing::ExitedWithCode(kExitStopped), "before the first step; there was nothing to save");
  }
}

TEST(StopSignal, LaterTheFirstAsksAndTheSecondEnds) {
  for (const int signal : kSignals) {
    EXPECT_EXIT(
        {
          const std::atomic<bool>& stop = catch_stop_signals();
          { const NothingToSave nothing; }
          raise(signal);
          if (!stop) _exit(1);
          raise(signal);
        },
        testing::ExitedWithCode(128 + signal), "");
  }
}

/// nohup ignores SIGHUP for the program that it starts.
TEST(StopSignal, AnIgnoredHangupStaysIgnored) {
  EXPECT_EXIT(
      {
        ::signal(SIGHUP, SIG_IGN);
        const std::atomic<bool>& stop = catch_stop_signals();
        raise(SIGHUP);
        _exit(stop ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
