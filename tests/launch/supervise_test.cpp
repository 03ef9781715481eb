#include "tessera/launch/supervise.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace tessera {
namespace {

TEST(StopRequestsDeathTest, OnesThatNobodyTookAreGone) {
  const auto ask = [] {
    {
      StopRequests requests;
      raise(SIGTERM);
      raise(SIGUSR1);
    }
    _exit(3);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace tessera
