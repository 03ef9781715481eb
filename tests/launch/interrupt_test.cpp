#include "tessera/launch/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tessera {
namespace {

TEST(CaughtInterrupt, TheFirstIsNotedAndTheSecondEnds) {
  {
    const CaughtInterrupt interrupt;
    EXPECT_FALSE(interrupt.asked());
    raise(SIGINT);
    EXPECT_TRUE(interrupt.asked());
    EXPECT_EXIT(raise(SIGINT), testing::KilledBySignal(SIGINT), "");
  }
  EXPECT_EXIT(raise(SIGINT), testing::KilledBySignal(SIGINT), "");
}

TEST(CaughtInterrupt, WhatIsIgnoredStaysSo) {
  const auto before = signal(SIGINT, SIG_IGN);
  {
    const CaughtInterrupt interrupt;
    raise(SIGINT);
    EXPECT_FALSE(interrupt.asked());
  }
  raise(SIGINT);
  signal(SIGINT, before);
}

}  // namespace
}  // namespace tessera
