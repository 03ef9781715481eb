/// Floors, rows and the table of a profile, over times that are written here; and what a device is
/// measured to do.

#include "tessera/runtime/profile.h"

#include <gtest/gtest.h>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"

namespace tessera {
namespace {

struct Named final : Kernel {
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  void run(const KernelArgs&) const override {}
  std::string name_;
};

/// 100 GFLOP/s; 200 GB/s up to 1 MB, 50 GB/s from there, 10 GB/s from 100 MB.
DeviceRates rates() { return {1e11, {{1e3, 2e11}, {1e6, 5e10}, {1e8, 1e10}}}; }

Call call(const OpDef& op, const char* kernel, const char* block, double flops, double bytes) {
  Call out;
  out.kernel = std::make_shared<Named>(kernel);
  out.op = &op;
  out.block = block;
  out.types = CallTypes{{},
                        {{DType::F32, {4, 8}, {}}, {DType::F32, {8, 2}, {"secret", 64}}},
                        {{DType::F32, {4, 2}, {}}}};
  out.flops = flops;
  out.bytes = bytes;
  return out;
}

TEST(Rates, AFloorIsWhatArithmeticOrBytesTakeAtLeast) {
  const DeviceRates r = rates();
  EXPECT_EQ(r.bytes_per_s(10), 2e11) << "below the smallest stream: as fast as that";
  EXPECT_EQ(r.bytes_per_s(999'999), 2e11);
  EXPECT_EQ(r.bytes_per_s(1e6), 5e10);
  EXPECT_EQ(r.bytes_per_s(1e12), 1e10);
  EXPECT_DOUBLE_EQ(r.floor_seconds(1e9, 1e3), 1e-2);
  EXPECT_DOUBLE_EQ(r.floor_seconds(1e9, 1e9), 1e-1);
}

TEST(Rates, AreMeasured) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  const DeviceRates measured = measure_rates(*device);
  EXPECT_GT(measured.flops_per_s, 1e8);
  ASSERT_GE(measured.streams.size(), 3u);
  for (std::size_t i = 0; i < measured.streams.size(); ++i) {
    EXPECT_GT(measured.streams[i].bytes_per_s, 1e7) << i;
    EXPECT_GT(measured.streams[i].bytes, i == 0 ? 0 : measured.streams[i - 1].bytes);
  }
  EXPECT_EQ(measured.streams.back().bytes, static_cast<double>(kLargestStream));
}

/// Three steps of 1 ms of two products in two layers, a small sum and a gap; step 8 is interrupted.
struct Three {
  std::vector<Call> calls = {call(kMatmul, "lib:matmul", "layers.0.mlp", 2e7, 1e3),
                             call(kMatmul, "lib:matmul", "layers.11.mlp", 2e7, 1e3),
                             call(kAdd, "hwy:elementwise", "", 0, 5e6)};
  Profile profile;

  Three() {
    profile.device = "cpu x 2";
    profile.rates = rates();
    for (std::int64_t step = 7; step <= 9; ++step) {
      std::int64_t now = step * 10'000'000;
      const std::int64_t begin = now;
      const auto add = [&](const Call& call, std::int64_t ns) {
        profile.calls.push_back({&call, {RegionKind::Forward, 0, 0}, now, now + ns});
        now += ns;
      };
      add(calls[0], 300'000);
      add(calls[1], step == 8 ? 5'000'000 : 200'000);
      add(calls[2], 400'000);
      profile.steps.push_back({step, begin, now + 100'000});
    }
  }
};

TEST(Profile, RowsAreOfOneKernelOpAndTypes) {
  const Three three;
  const std::vector<KernelRow> rows = kernel_rows(three.profile);
  ASSERT_EQ(rows.size(), 2u);
  const KernelRow &products = rows[0], &sum = rows[1];
  EXPECT_EQ(products.kernel, "lib:matmul");
  EXPECT_EQ(products.types, "f32[4,8] f32[8,2]@packed -> f32[4,2]");
  EXPECT_EQ(products.where, "layers.*.mlp");
  EXPECT_EQ(products.calls, 2);
  EXPECT_DOUBLE_EQ(products.seconds, 5e-4) << "the interruption of step 8 does not count";
  EXPECT_DOUBLE_EQ(products.flops, 4e7);
  EXPECT_DOUBLE_EQ(products.floor_seconds, 4e-4);
  EXPECT_DOUBLE_EQ(products.share_of_floor(), 0.8);
  EXPECT_FALSE(is_slow(products, three.profile));
  EXPECT_EQ(sum.op, "add");
  EXPECT_DOUBLE_EQ(sum.floor_seconds, 1e-4);
  EXPECT_TRUE(is_slow(sum, three.profile)) << "40 % of the step at a quarter of the floor";
}

TEST(Profile, TheTableAddsUp) {
  const std::string told = table(Three().profile);
  for (const char* line : {
           "profile of steps 7 to 9 on cpu x 2",
           "       2      0.500  50.00%      80.0      0.0     80%   lib:matmul layers.*.mlp "
           "f32[4,8]",
           "       1      0.400  40.00%       0.0     12.5     25% ! hwy:elementwise add f32[4,8]",
           "       0      0.100  10.00%                             in no kernel\n",
           "       0      0.000   0.00%                             interruptions: ",
           "       3      1.000 100.00%                             the step\n",
       })
    EXPECT_NE(told.find(line), std::string::npos) << line << "\nis not in\n" << told;
}

TEST(Profile, AnInterruptedKernelIsNotTimeOutsideOfKernels) {
  Three three;
  // In step 9 too, the kernel before it: no kernel is slow in its median, but two of three steps.
  for (std::size_t i = 6; i < three.profile.calls.size(); ++i) {
    CallTime& call = three.profile.calls[i];
    if (i > 6) call.begin_ns += 3'000'000;
    call.end_ns += 3'000'000;
  }
  three.profile.steps[2].end_ns += 3'000'000;
  const std::string told = table(three.profile);
  for (const char* line : {
           "       0      0.100   2.50%                             in no kernel\n",
           "       0      3.000  75.00%                             interruptions: ",
           "       3      4.000 100.00%                             the step\n",
       })
    EXPECT_NE(told.find(line), std::string::npos) << line << "\nis not in\n" << told;
}

}  // namespace
}  // namespace tessera
