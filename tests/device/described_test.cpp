/// The device that is only described.

#include <gtest/gtest.h>

#include "tessera/device/device.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/table.h"

namespace tessera {
namespace {

TEST(DescribedDevice, ReadsTheOperandsThatProcessorsReadAtStrides) {
  const auto described = make_described_device(), processor = make_cpu_device({.threads = 1});
  int read = 0;
  for (const OpDef* op : all_ops()) {
    for (int operand = 0; operand < 6; ++operand) {
      EXPECT_EQ(described->accepts_strides(*op, operand), processor->accepts_strides(*op, operand))
          << op->name << " " << operand;
      read += described->accepts_strides(*op, operand) ? 1 : 0;
    }
  }
  EXPECT_GT(read, 10);
}

TEST(DescribedDevice, NothingRunsAndNothingLiesOnIt) {
  const auto device = make_described_device();
  EXPECT_EQ(device->name(), "described");
  EXPECT_EQ(device->isa(), "");
  const TensorType square{DType::F32, {8, 8}, {}};
  const Attrs plain = {false, false};
  const auto kernel =
      device->make_kernel({OpCall(kMatmul, {&square, &square}, plain, {&square}), {}, {}, {}});
  EXPECT_EQ(kernel->name(), "described");
  EXPECT_EQ(kernel->workspace_bytes(), 0);
  EXPECT_THROW(kernel->run({}), Broken);
  EXPECT_THROW(device->release(nullptr), Broken);
  try {
    device->allocate(Memory::Device, 64);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
  }
}

}  // namespace
}  // namespace tessera
