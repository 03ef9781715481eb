/// Buckets on devices: how many sums are left, that nothing is copied, and what memory they take.
/// That no bit changes is in memory_switches_test.cpp and overlap_test.cpp.

#include <gtest/gtest.h>

#include "train/memory_mesh.h"

namespace tessera {
namespace {

/// Sums over ranks in one step of one rank.
std::int64_t num_all_reduces(const ProgramPlan& program) {
  std::int64_t out = 0;
  for (const auto& [axes, counts] : planned_counts(program))
    out += counts[static_cast<std::size_t>(CollectiveKind::AllReduce)].calls;
  return out;
}

std::int64_t num_calls(const ProgramPlan& program, std::string_view op) {
  std::int64_t out = 0;
  for (const RegionPlan& region : program.regions)
    out += std::ranges::count_if(region.calls, [&](const Call& c) { return c.op->name == op; });
  return out;
}

class BucketStep : public testing::TestWithParam<MemoryMesh> {
 public:
  /// The step of one rank of the first stage.
  ProgramPlan planned(const BucketStrategy& buckets, const OffloadStrategy& offload = {}) {
    Strategy strategy = GetParam().strategy();
    strategy.buckets = buckets;
    strategy.offload = offload;
    const Graph step = GetParam().step();
    return StagedRun(step, strategy, GetParam().inputs()).plan(*device, 0).program(kTrainProgram);
  }
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
};

/// Each bucket of n gradients saves n - 1 sums, and gradients are computed where it lies.
TEST_P(BucketStep, SumsLessOftenAndCopiesNothing) {
  for (const OffloadStrategy& offload : {OffloadStrategy{}, OffloadStrategy{true, true, true}}) {
    const std::int64_t each = num_all_reduces(planned({}, offload));
    for (const std::int64_t bytes : {1 << 20, 6000}) {
      SCOPED_TRACE(bytes);
      const ProgramPlan joined = planned({bytes}, offload);
      std::int64_t saved = 0;
      for (const BucketUse& bucket : joined.buckets) {
        saved += bucket.values - 1;
        EXPECT_GT(bucket.values, 1);
        EXPECT_LE(bucket.bytes, bytes);
        EXPECT_EQ(bucket.copied_bytes, 0);
      }
      EXPECT_EQ(num_all_reduces(joined), each - saved);
      EXPECT_EQ(num_calls(joined, "bucket"), 0);
      EXPECT_EQ(
          num_calls(joined, "slice") + num_calls(joined, "reshape") + num_calls(joined, "grad"),
          num_calls(planned({}, offload), "slice") + num_calls(planned({}, offload), "reshape") +
              num_calls(planned({}, offload), "grad"))
          << "sums are read where they lie";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, BucketStep, testing::ValuesIn(memory_meshes()), memory_mesh_name);

/// What Tessera's own gpt2-tiny does on four devices: 52 gradients.
TEST(Buckets, OfAGpt2AreOneSum) {
  ModelConfig model = tiny("gpt2", 4);
  model.dropout = 0;
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (const std::int64_t micro_batches : {1, 3}) {
    SCOPED_TRACE(micro_batches);
    ParallelConfig parallel = zero(4, 0, micro_batches);
    const Plan each = step_plan(model, 12, parallel, *device);
    parallel.bucket_mb = 1;
    const Plan one = step_plan(model, 12, parallel, *device);
    const ProgramPlan &before = each.program(kTrainProgram), &after = one.program(kTrainProgram);
    ASSERT_EQ(after.buckets.size(), 1u);
    EXPECT_EQ(after.buckets[0].values, 52);
    EXPECT_EQ(after.buckets[0].copied_bytes, 0);
    EXPECT_EQ(num_all_reduces(before) - num_all_reduces(after), 51);
    EXPECT_EQ(bytes_of(planned_counts(before).at("dp")), bytes_of(planned_counts(after).at("dp")));
    // Sums of micro-batches are kept through the step with or without; they lie closer together.
    EXPECT_TRUE(micro_batches == 1 || one.peak_bytes() <= each.peak_bytes()) << one.peak_bytes();
  }
}

}  // namespace
}  // namespace tessera
