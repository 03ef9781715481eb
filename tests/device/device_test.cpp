#include "tessera/device/device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "device/kernel_test.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/table.h"

namespace tessera {
namespace {

using testing::expect_like_reference;
using testing::KernelSetting;
using testing::random_tensor;
using testing::run_kernel;

TEST(Device, ArenasAreAlignedZeroAndReleased) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  EXPECT_EQ(device->name(), "cpu x 2");
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5} << 20}) {
    char* const memory = static_cast<char*>(device->allocate(Memory::Device, bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (2 << 20), 0U);
    for (std::int64_t i = 0; i < bytes; i += 4096) EXPECT_EQ(memory[i], 0);
    std::memset(memory, 1, static_cast<std::size_t>(bytes));
    device->release(memory);
  }
  int outside = 0;
  EXPECT_THROW(device->release(&outside), Error);
  device->allocate(Memory::Device, 1 << 20);  // freed with the device
}

/// A field of the mapping in which `memory` lies, in bytes, and how large it is; read without the
/// device's help.
std::int64_t mapping(const void* memory, const std::string& key) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream address;
  address << std::hex << reinterpret_cast<std::uintptr_t>(memory) << "-";
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(address.str())) inside = true;
    if (inside && line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  }
  return -1;
}

TEST(Device, ArenasAreTouchedOnceAtStartOnHugePages) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  constexpr std::int64_t kBytes = std::int64_t{32} << 20;
  void* const memory = device->allocate(Memory::Device, kBytes);
  // The kernel joins neighbours that are alike into one mapping: another flag sets the arena apart.
  ASSERT_EQ(madvise(memory, kBytes, MADV_DONTDUMP), 0) << std::strerror(errno);
  ASSERT_EQ(mapping(memory, "Size:"), kBytes);
  EXPECT_EQ(mapping(memory, "Rss:"), kBytes) << "every page is there before the first step";
  const std::int64_t huge = mapping(memory, "AnonHugePages:");
  EXPECT_EQ(device->huge_page_bytes(memory), huge);
  std::string allowed;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), allowed);
  const bool given =
      allowed.find("[madvise]") != allowed.npos || allowed.find("[always]") != allowed.npos;
  std::cout << huge << " of " << kBytes << " bytes on huge pages (" << allowed << ")\n";
  // The system may have fewer free huge pages than asked for, but hardly none.
  EXPECT_EQ(huge > 0, given);
  int outside = 0;
  EXPECT_THROW(device->huge_page_bytes(&outside), Error);
}

TEST(Device, RefusesWhatItCannotGive) {
  EXPECT_THROW(make_cpu_device({-1, -1}), Error);
  try {
    make_cpu_device({1, -1})->allocate(Memory::Device, std::int64_t{1} << 60);
    FAIL() << "a reservation of 2^60 bytes succeeded";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Resource);
    EXPECT_NE(std::string(error.what()).find("1099511627776 MiB"), std::string::npos)
        << error.what();
  }
}

TEST(Device, SeveralInOneProcess) {
  std::vector<std::thread> ranks;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([rank] {
      const std::unique_ptr<Device> device = make_cpu_device({2, -1});
      for (int i = 0; i < 5; ++i) {
        const std::vector<HostTensor> ins = {random_tensor(DType::F32, {64, 96}, rank),
                                             random_tensor(DType::F32, {96, 128}, rank + 10)};
        expect_like_reference(*device, kMatmul, {std::string("m k, k n -> m n")}, ins,
                              {1e-6, 1e-5});
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(Device, EveryOpHasAKernelForWhatItIs) {
  // A kernel is listed for an op of the table, once or more, or tries every op.
  for (const cpu::KernelEntry& entry : cpu::kernel_list()) {
    EXPECT_TRUE(entry.op == nullptr || find_op(entry.op->name) == entry.op);
    EXPECT_NE(entry.make, nullptr);
  }
}

TEST(ReferenceKernel, EqualsTheInterpreter) {
  testing::ReferenceDevice device;
  const std::vector<HostTensor> x = {random_tensor(DType::F32, {3, 5, 7}, 1)};
  EXPECT_EQ(expect_like_reference(device, kSoftmax, {std::int64_t{2}}, x, {1e-6, 1e-7}),
            "reference");
  const std::vector<HostTensor> ints = {random_tensor(DType::I64, {3, 5}, 1, -9, 9),
                                        random_tensor(DType::I64, {5}, 2, -9, 9)};
  expect_like_reference(device, kMul, {}, ints, {});
}

TEST(ReferenceKernel, ReadsStridedOperandsAndItsOwnResult) {
  testing::ReferenceDevice device;
  const std::vector<HostTensor> ins = {random_tensor(DType::F32, {4, 6}, 1),
                                       random_tensor(DType::F32, {4, 6}, 2)};
  KernelSetting setting;
  setting.strides = {{1, 4}, {10, 1}};
  expect_like_reference(device, kSub, {}, ins, {1e-7, 0}, setting);
  setting.strides = {};
  setting.in_place = 0;
  expect_like_reference(device, kSub, {}, ins, {1e-7, 0}, setting);
}

TEST(ReferenceKernel, RandomNumbersFollowTheMicroBatch) {
  testing::ReferenceDevice device;
  const HostTensor x = random_tensor(DType::F32, {6, 5}, 1, 1, 2),
                   step = HostTensor::scalar<std::int64_t>(3);
  const Attrs attrs = {0.5, std::string("here")};
  const HostTensor whole = evaluate(kDropout, {x, step}, attrs)[0];
  for (std::int64_t microbatch = 0; microbatch < 3; ++microbatch) {
    HostTensor rows(DType::F32, {2, 5});
    for (std::int64_t i = 0; i < 10; ++i) rows.set(i, x.at(10 * microbatch + i));
    const ShardInfo shard{{6, 5}, {0, 0}, {2, 0}, {6, 5}};
    KernelSetting setting;
    setting.ins = {shard, {}}, setting.outs = {shard};
    setting.microbatch = microbatch;
    const testing::KernelRun run =
        run_kernel(device, kDropout, attrs, {rows, step}, {rows.type()}, setting);
    for (std::int64_t i = 0; i < 10; ++i)
      EXPECT_EQ(run.outs[0].at(i), whole.at(10 * microbatch + i));
  }
}

}  // namespace
}  // namespace tessera
