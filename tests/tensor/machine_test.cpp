// The text form of machines.
#include "tessera/tensor/machine.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

TEST(Machine, Texts) {
  EXPECT_EQ(to_text(Machine{}),
            "core=15GB/s+1us socket=10GB/s+2us host=10GB/s+5us rack=5GB/s+20us");
  const Machine fast = parse_machine("host=12.5GB/s+1.5us  core=1e+03GB/s+0us");
  EXPECT_EQ(fast.link(Level::Host), (LinkSpeed{12.5, 1.5}));
  EXPECT_EQ(fast.link(Level::Core), (LinkSpeed{1000, 0}));
  EXPECT_EQ(fast.link(Level::Rack), Machine{}.rack);  // not named
  EXPECT_EQ(parse_machine(to_text(fast)), fast);
  EXPECT_THROW(fast.link(Level::Time), Broken);
}

TEST(Machine, Refusals) {
  for (const char* line : {"core", "core=15", "core=15GB/s", "time=15GB/s+1us", "core=0GB/s+1us",
                           "core=-1GB/s+1us", "core=xGB/s+1us", "core=15GB/s+-1us",
                           "core=15GB/s+1ms", "core=infGB/s+1us", "core=nanGB/s+1us"}) {
    EXPECT_THROW(parse_machine(line), Error) << line;
  }
}

}  // namespace
}  // namespace tessera
