/// What `tessera plan` prints of a mesh: the parts that do not depend on the machine; the guide
/// docs/guides/plan.md shows some of it.

#include <gtest/gtest.h>

#include "docs/shown.h"
#include "tessera/base/text.h"
#include "tessera/config/presets.h"
#include "tessera/report/mesh_report.h"

namespace tessera::test {
namespace {

constexpr const char* kPlanOutput = "docs/guides/plan.md";
constexpr const char* kThisFile = "tests/docs/plan_output_test.cpp";

/// tessera plan --preset gpt2-tiny --vocab-size 65 --devices 4 --tensor-model-parallel-size 2
/// --zero-1-memory-optimization
RunConfig config() {
  RunConfig out;
  find_preset("gpt2-tiny").apply(out);
  out.model.vocabulary = 65;
  out.parallel.devices = 4;
  out.parallel.tensor = 2;
  out.zero1 = true;
  complete(out);
  return out;
}

// clang-format off
constexpr const char* kTraffic =
    "what each device sends in a step\n"
    "  along dp                   410 KiB\n"
    "  along dp.tp                   12 B\n"
    "  along tp                   577 KiB\n"
    "  in all                     987 KiB\n"
    "    region    collective      along     calls    bytes each        in all\n"
    "  outside of blocks\n"
    "    forward   all_reduce      tp            1      32.0 KiB      32.0 KiB\n"
    "    backward  all_reduce      tp            1      32.0 KiB      32.0 KiB\n"
    "    backward  reduce_scatter  dp            1      4.00 KiB      4.00 KiB\n"
    "    backward  reduce_scatter  dp            1      4.12 KiB      4.12 KiB\n"
    "    update    all_gather      dp            1      4.00 KiB      4.00 KiB\n"
    "    update    all_gather      dp            1      4.12 KiB      4.12 KiB\n"
    "              below 1.00 KiB                9                    1.52 KiB\n"
    "  each of layers.0 ... layers.3 (4 blocks)\n"
    "    forward   all_reduce      tp            2      32.0 KiB      64.0 KiB\n"
    "    backward  all_reduce      tp            2      32.0 KiB      64.0 KiB\n"
    "    backward  reduce_scatter  dp            1      4.00 KiB      4.00 KiB\n"
    "    backward  reduce_scatter  dp            1      12.0 KiB      12.0 KiB\n"
    "    backward  reduce_scatter  dp            2      16.0 KiB      32.0 KiB\n"
    "    update    all_gather      dp            1      4.00 KiB      4.00 KiB\n"
    "    update    all_gather      dp            1      12.0 KiB      12.0 KiB\n"
    "    update    all_gather      dp            2      16.0 KiB      32.0 KiB\n"
    "              below 1.00 KiB               16                    2.38 KiB\n";

// A partial product, the reshard that finishes its sum, and the bias that is added once.
constexpr const char* kPlacements =
    "placements: per dim the axes that split it, - for none; +axis: partial along it, a sum that is not finished\n"
    "  each of layers.0 ... layers.3 (4 blocks)\n"
    "    parameter  mlp.down.weight                               f32[64,256]          [-,tp]\n"
    "    forward    mlp.down                 matmul               f32[8,32,64]         [dp,-,-]+tp\n"
    "    forward    mlp.down                 reshard              f32[8,32,64]         [dp,-,-]\n"
    "    parameter  mlp.down.bias                                 f32[64]              [-]\n"
    "    forward    mlp.down                 add                  f32[8,32,64]         [dp,-,-]\n";
// clang-format on

TEST(PlanOutput, HasTheTrafficAndThePlacements) {
  const auto device = make_cpu_device({.threads = 1});
  MeshReport report = mesh_report_of(compile_programs(
      RunSetup(config()), {.evaluate = false, .texts = 0, .placed = true}, *device));
  EXPECT_EQ(traffic_text(report), kTraffic);

  // Of the first class of blocks, the forward pass of the second half of the feed-forward layer.
  report.placements.resize(1);
  std::erase_if(report.placements[0].values, [](const PlacedValue& value) {
    return value.path.find("mlp.down") == std::string::npos ||
           (value.kind != "parameter" && value.kind != "forward");
  });
  EXPECT_EQ(placements_text(report), kPlacements);
}

TEST(PlanOutput, TheDocumentShowsTheBuckets) {
  RunConfig of = config();
  of.parallel.tensor = 1;
  of.zero1 = false;
  of.parallel.bucket_mb = 25;
  complete(of);
  const auto device = make_cpu_device({.threads = 1});
  const std::string report = traffic_text(
      mesh_report_of(compile_programs(RunSetup(of), {.evaluate = false, .texts = 0}, *device)));
  const std::size_t line = report.find("  buckets: ");
  ASSERT_NE(line, std::string::npos) << report;
  expect_text(kPlanOutput, kThisFile, "buckets", report.substr(line));
}

}  // namespace
}  // namespace tessera::test
