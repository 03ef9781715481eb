/// docs/guides/plan.md shows what `tessera plan` prints of a mesh: the parts that do not depend on
/// the machine.

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

// A partial product, the reshard that finishes its sum, and the bias that is added once.
// clang-format off
constexpr const char* kPlacements =
    "placements: per dim the axes that split it, - for none; +axis: partial along it, a sum that is not finished\n"
    "  each of layers.0 ... layers.3 (4 blocks)\n"
    "    parameter  mlp.down.weight                               f32[64,256]          [-,tp]\n"
    "    forward    mlp.down                 matmul               f32[8,32,64]         [dp,-,-]+tp\n"
    "    forward    mlp.down                 reshard              f32[8,32,64]         [dp,-,-]\n"
    "    parameter  mlp.down.bias                                 f32[64]              [-]\n"
    "    forward    mlp.down                 add                  f32[8,32,64]         [dp,-,-]\n";
// clang-format on

TEST(PlanOutput, TheDocumentShowsTheTraffic) {
  const auto device = make_cpu_device({.threads = 1});
  MeshReport report = mesh_report_of(compile_programs(
      RunSetup(config()), {.evaluate = false, .texts = 0, .placed = true}, *device));
  expect_text(kPlanOutput, kThisFile, "traffic", traffic_text(report));

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
