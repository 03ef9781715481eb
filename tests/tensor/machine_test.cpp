// The text form of machines.
#include "tessera/tensor/machine.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

TEST(Machine, Texts) {
  EXPECT_EQ(to_text(Machine{}),
            "core=15GB/s+1us socket=10GB/s+2us host=10GB/s+5us rack=5GB/s+20us "
            "compute=100GFLOP/s memory=20GB/s");
  const Machine fast = parse_machine("host=12.5GB/s+1.5us  core=1e+03GB/s+0us");
  EXPECT_EQ(fast.link(Level::Host), (LinkSpeed{12.5, 1.5}));
  EXPECT_EQ(fast.link(Level::Core), (LinkSpeed{1000, 0}));
  EXPECT_EQ(fast.link(Level::Rack), Machine{}.rack);  // not named
  EXPECT_EQ(parse_machine(to_text(fast)), fast);
  EXPECT_THROW(fast.link(Level::Time), Broken);
  const Machine strong = parse_machine("compute=1200GFLOP/s memory=80.5GB/s");
  EXPECT_EQ(strong.gigaflops_per_s, 1200);
  EXPECT_EQ(strong.memory_gigabytes_per_s, 80.5);
  EXPECT_EQ(strong.core, Machine{}.core);
  EXPECT_EQ(parse_machine(to_text(strong)), strong);
}

TEST(Machine, Prices) {
  const Machine machine = parse_machine("host=4GB/s+3us compute=50GFLOP/s memory=10GB/s");
  EXPECT_DOUBLE_EQ(machine.move_seconds(Level::Host, 8e9), 2 + 3e-6);
  EXPECT_DOUBLE_EQ(machine.move_seconds(Level::Host, 0, 4), 12e-6);
  EXPECT_DOUBLE_EQ(machine.relative_price(Level::Host), 15.0 / 4);
  EXPECT_DOUBLE_EQ(machine.relative_price(Level::Core), 1);
  EXPECT_DOUBLE_EQ(machine.work_seconds(1e9, 1e8), 0.02) << "arithmetic takes longer";
  EXPECT_DOUBLE_EQ(machine.work_seconds(1e8, 1e9), 0.1) << "bytes take longer";
}

TEST(Machine, Refusals) {
  for (const char* line :
       {"core", "core=15", "core=15GB/s", "time=15GB/s+1us", "core=0GB/s+1us", "core=-1GB/s+1us",
        "core=xGB/s+1us", "core=15GB/s+-1us", "core=15GB/s+1ms", "core=infGB/s+1us",
        "core=nanGB/s+1us", "compute", "compute=", "compute=5GB/s", "compute=0GFLOP/s",
        "compute=nanGFLOP/s", "memory=-2GB/s", "memory=20GB/s+1us"}) {
    EXPECT_THROW(parse_machine(line), Error) << line;
  }
}

}  // namespace
}  // namespace tessera
