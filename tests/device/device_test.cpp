#include "tessera/device/device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
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

/// A folder of this test alone.
struct OffloadFolder {
  OffloadFolder() { std::filesystem::create_directories(path); }
  ~OffloadFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / text("tessera_offload_", getpid());
};

TEST(Device, PoolsOfTheHostMayBeFilesWithoutAName) {
  const OffloadFolder folder;
  for (const std::string& where : {std::string(), folder.path.string()}) {
    const std::unique_ptr<Device> device = make_cpu_device({.threads = 1, .offload_folder = where});
    constexpr std::int64_t kBytes = 5 << 20;
    auto* const arena = static_cast<std::byte*>(device->allocate(Memory::Device, kBytes));
    auto* const host = static_cast<std::byte*>(device->allocate(Memory::Host, kBytes));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path));
    EXPECT_EQ(host[kBytes - 1], std::byte{0});
    device->fill(arena, std::byte{7}, kBytes);
    device->copy(host, arena, 100);
    EXPECT_EQ(host[99], std::byte{7});
    EXPECT_EQ(host[100], std::byte{0});
    device->release(host);
    device->release(arena);
  }
}

/// Not on huge pages, and not in steps of them: the drive gives what was planned.
TEST(Device, AFileIsAsLargeAsItsPool) {
  const OffloadFolder folder;
  const std::unique_ptr<Device> device =
      make_cpu_device({.threads = 1, .offload_folder = folder.path.string()});
  constexpr std::int64_t kBytes = 5000;
  void* const host = device->allocate(Memory::Host, kBytes);
  EXPECT_EQ(mapping(host, "Size:"), 8192);
  device->release(host);
}

/// Room is made for more of them while they run, where fewer were expected.
TEST(Device, CopiesRunInTheOrderOfTheirStarts) {
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
  device->expect_copies(3);
  constexpr std::int64_t kBytes = 1 << 20;
  std::vector<std::byte*> parts;
  for (int i = 0; i < 9; ++i)
    parts.push_back(static_cast<std::byte*>(
        device->allocate(i % 2 == 0 ? Memory::Device : Memory::Host, kBytes)));
  for (int round = 1; round <= 20; ++round) {
    device->fill(parts[0], std::byte(round), kBytes);
    std::uint64_t last = 0;
    for (std::size_t i = 1; i < parts.size(); ++i)
      last = device->start_copy(parts[i], parts[i - 1], kBytes);
    device->wait_copy(last);
    for (const std::byte* part : parts) ASSERT_EQ(part[kBytes - 1], std::byte(round));
  }
  device->start_copy(parts[1], parts[0], kBytes);
  device->release(parts[1]);  // ends the copy
}

TEST(Device, SaysWhyAFolderCannotHoldAPool) {
  const auto refused = [](const std::string& folder, std::int64_t bytes) -> std::string {
    try {
      make_cpu_device({.threads = 1, .offload_folder = folder})->allocate(Memory::Host, bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Resource);
      return error.what();
    }
    return "";
  };
  const auto says = [](const std::string& what, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts) EXPECT_NE(what.find(part), what.npos) << what;
  };
  const OffloadFolder folder;
  const std::string path = folder.path.string();
  says(refused(path + "/absent", 1), {path + "/absent", "No such file", "writable folder"});
  says(refused(path, std::int64_t{1} << 50),
       {path, "has no room for a file of 1024 TiB (1125899906842624 bytes)", "another drive"});
  {
    rlimit given = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &given), 0);
    const auto at_limit = std::signal(SIGXFSZ, SIG_IGN);  // as the command does
    const rlimit low = {1 << 20, given.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    says(refused(path, 5 << 20),
         {"a file of 5.00 MiB", "raise the file size limit (ulimit -f), which is 1.00 MiB"});
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &given), 0);
    std::signal(SIGXFSZ, at_limit);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  if (geteuid() == 0) return;  // who may write everywhere
  std::filesystem::permissions(folder.path, std::filesystem::perms::owner_read);
  says(refused(path, 1), {path, "Permission denied"});
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
