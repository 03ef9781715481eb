/// Pipelines whose devices outnumber the cores.

#include "tessera/plan/share_cores.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

PlayOptions options() {
  PlayOptions out;
  out.cost = [](const Action& action) { return action.region == RegionKind::Forward ? 1.0 : 2.0; };
  return out;
}

double seconds_of(int stages, std::int64_t microbatches, std::int64_t sharing) {
  const Pipeline pipeline(make_schedule("1f1b", {stages, 1, microbatches}));
  return makespan(play_on_cores(pipeline, options(), sharing));
}

TEST(ShareCores, DevicesWithCoresOfTheirOwnGainNothing) {
  EXPECT_DOUBLE_EQ(seconds_of(4, 8, 1), 3 * (8 + 3));
  EXPECT_DOUBLE_EQ(seconds_of(1, 8, 4), 3 * 8) << "all devices of a stage work at one time";
}

/// With as many stages on a core, some stage always works, at the speed of all: nothing is lost.
TEST(ShareCores, WaitingStagesLeaveTheirTurnsToOthers) {
  for (const std::int64_t microbatches : {1, 2, 8}) {
    const auto work = static_cast<double>(3 * microbatches);
    EXPECT_NEAR(seconds_of(2, microbatches, 2), work, 0.02 * work) << microbatches;
    EXPECT_NEAR(seconds_of(4, microbatches, 4), work, 0.02 * work) << microbatches;
  }
}

/// Four stages on two cores: between the work of all, shared out, and a pipeline twice as fast.
TEST(ShareCores, FewStagesAtATimeLeaveCoresFree) {
  const double one = seconds_of(4, 1, 2), eight = seconds_of(4, 8, 2);
  EXPECT_NEAR(one, 3 * 4 / 2.0, 0.01) << "one stage at a time, each on a core of its own";
  EXPECT_GT(eight, 3 * 8);
  EXPECT_LT(eight, 3 * (8 + 3));
}

}  // namespace
}  // namespace tessera
