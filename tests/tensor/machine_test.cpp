// What machines ask for messages and kernels.
#include "tessera/tensor/machine.h"

#include <gtest/gtest.h>

#include "machine_line.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Servers of two groups of four, four to a rack; the network card of a server is shared.
Machine servers() {
  Machine out = parse_machine("core=40GB/s+1us socket=20GB/s+2us host=10GB/s+5us rack=5GB/s+20us");
  out.core.units = 4, out.socket.units = 2, out.host.units = 4, out.rack.units = 8;
  out.socket.sharing = 4, out.host.sharing = 8, out.rack.sharing = 1;
  return out;
}

TEST(Machine, Levels) {
  EXPECT_EQ(servers().devices(), 256);
  EXPECT_THROW(servers().link(Level::Time), Broken);
  EXPECT_EQ(Machine{}.devices(), 0) << "as many as there are";
  EXPECT_EQ(Machine{}.level_of(4096), Level::Core);
  const struct {
    std::int64_t devices;
    Level level;
  } cases[] = {{1, Level::Core},   {4, Level::Core},   {3, Level::Rack},
               {8, Level::Socket}, {16, Level::Host},  {32, Level::Host},
               {64, Level::Rack},  {256, Level::Rack}, {512, Level::Rack}};
  for (const auto& c : cases) EXPECT_EQ(servers().level_of(c.devices), c.level) << c.devices;
}

/// Groups that do not divide a unit lie on the level of the worst placed of those that there are.
TEST(Machine, LevelsOfGroupsThatDivideNoUnit) {
  const struct {
    const char* why;
    std::int64_t devices, in_use;
    Level level;
  } cases[] = {
      {"one group, all of it wired", 3, 3, Level::Core},
      {"devices 3 to 5 are in two groups of four", 3, 6, Level::Socket},
      {"devices 6 to 8 are in two servers", 3, 9, Level::Host},
      {"devices 30 to 32 are in two racks", 3, 33, Level::Rack},
      {"a server and a half", 12, 12, Level::Host},
      {"more than a group", 6, 6, Level::Socket},
      {"whatever is in use", 4, 6, Level::Core},
      {"more than there are in use make no sense and no harm", 8, 4, Level::Core},
  };
  for (const auto& c : cases) EXPECT_EQ(servers().level_of(c.devices, c.in_use), c.level) << c.why;
  Machine server = servers();
  server.host.units = server.rack.units = 1;
  EXPECT_EQ(server.level_of(3), Level::Socket) << "there is one server";
  EXPECT_EQ(server.level_of(6), Level::Socket);
}

TEST(Machine, ContentionOfLinks) {
  const struct {
    const char* why;
    std::vector<AxisSpan> axes;
    double gigabytes_per_s, microseconds;
  } cases[] = {
      {"wired to each other", {{Level::Core, 1, 4}}, 40, 1},
      {"two groups, both members of each behind the same link", {{Level::Socket, 1, 8}}, 20, 2},
      {"four pairs, each across the link", {{Level::Socket, 4, 2}}, 5, 2},
      {"two members of four groups are neighbours", {{Level::Socket, 2, 4}}, 10, 2},
      {"eight groups share a card", {{Level::Host, 8, 4}}, 1.25, 5},
      {"one group has the card for itself", {{Level::Host, 1, 32}}, 10, 5},
      {"four groups share it", {{Level::Host, 4, 8}}, 2.5, 5},
      {"both axes of one group", {{Level::Host, 8, 4}, {Level::Socket, 1, 8}}, 10, 5},
      {"nobody shares", {{Level::Rack, 32, 8}}, 5, 20},
      {"the slowest of all levels", {{Level::Rack, 8, 32}}, 1.25, 20},
  };
  for (const auto& c : cases) {
    const LinkPrice price = servers().price(c.axes);
    EXPECT_NEAR(1e6 / price.per_byte, c.gigabytes_per_s, 1e-3 * c.gigabytes_per_s) << c.why;
    EXPECT_EQ(price.per_step, 1e9 * c.microseconds) << c.why;
  }
  EXPECT_DOUBLE_EQ(servers().relative_price({Level::Host, 8, 4}), 32);
}

TEST(Machine, Messages) {
  const Machine m = servers();
  EXPECT_DOUBLE_EQ(m.message_seconds(0, 1, 1, 40e9), 1 + 1e-6);
  EXPECT_DOUBLE_EQ(m.message_seconds(0, 4, 4, 20e9), 4 + 2e-6) << "four share the link";
  EXPECT_DOUBLE_EQ(m.message_seconds(4, 8, 4, 10e9), 4 + 5e-6) << "into the next server";
  EXPECT_DOUBLE_EQ(m.message_seconds(0, 32, 32, 5e9), 1 + 20e-6);
}

TEST(Machine, OfMeshes) {
  const Mesh mesh = parse_mesh("a=4@host mb=3@time b=2@socket c=4");
  const AxisSpan span = span_of(mesh, "a");
  EXPECT_EQ(span.level, Level::Host);
  EXPECT_EQ(span.stride, 8);
  EXPECT_EQ(span.size, 4);
  const AxisSpan part = span_of(mesh, axis_part("a", 1, 2));
  EXPECT_EQ(part.level, Level::Host) << "that of the axis";
  EXPECT_EQ(part.stride, 16);
  EXPECT_THROW(span_of(mesh, "mb"), Broken);
  const Machine slow = parse_machine("host=4GB/s+3us");
  EXPECT_DOUBLE_EQ(slow.move_seconds(spans_of(mesh, {"a", "c"}), 8e9), 2 + 3e-6);
  EXPECT_DOUBLE_EQ(slow.move_seconds(spans_of(mesh, {"a"}), 0, 4), 12e-6);
  EXPECT_DOUBLE_EQ(slow.relative_price(span), 15.0 / 4);
}

TEST(Machine, Kernels) {
  Machine m = parse_machine("compute=50GFLOP/s memory=10GB/s");
  EXPECT_DOUBLE_EQ(m.kernel_seconds({1e9, 1e8}), 0.02) << "arithmetic takes longer";
  EXPECT_DOUBLE_EQ(m.kernel_seconds({1e8, 1e9}), 0.1) << "bytes take longer";
  m.device.start_microseconds = 3;
  EXPECT_DOUBLE_EQ(m.kernel_seconds({}), 3e-6);
  m.device.start_microseconds = 0;
  m.device.bf16 = {400, 64, 32, 16};
  const KernelWork product{1e9, 0, DType::BF16, KernelWork::Product{64, 96, 48}};
  EXPECT_DOUBLE_EQ(m.kernel_seconds(product), 1 / (400 * 0.5 * 0.75 * 0.75));
  m.device.bf16.attention = 0.5;
  m.device.bf16.others = 0.25;
  EXPECT_DOUBLE_EQ(m.kernel_seconds(product), 1 / (400 * 0.5 * 0.75 * 0.75)) << "no attention";
  EXPECT_DOUBLE_EQ(m.kernel_seconds({1e9, 0, DType::BF16, KernelWork::Product{64, 96, 48, true}}),
                   2 / (400 * 0.5 * 0.75 * 0.75));
  EXPECT_DOUBLE_EQ(m.kernel_seconds({1e9, 0, DType::BF16}), 0.08);
  EXPECT_DOUBLE_EQ(m.copy_seconds(1e10), 1 + 5e-6);
}

}  // namespace
}  // namespace tessera
