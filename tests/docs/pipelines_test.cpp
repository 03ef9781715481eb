/// The output and the picture about pipelines in docs/guides/scale.md and
/// docs/guides/plan.md.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "docs/shown.h"
#include "repo_file.h"
#include "tessera/config/presets.h"
#include "tessera/models/parallel.h"
#include "tessera/nn/layers.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/report/planned_pipeline.h"

namespace tessera::test {
namespace {

/// Three layers on stage 0, all others on stage 1.
ParallelConfig by_number(const ModelConfig& model) {
  ParallelConfig config;
  config.devices = config.pipeline = 2;
  config.chunks = chunks_by_layer(model, [](std::int64_t layer) { return layer < 3 ? 0 : 1; });
  return config;
}

/// The first layer of `layers` on stage 0, all others on stage 1.
Value by_marks(Value x, int layers) {
  for (int i = 0; i < layers; ++i) {
    Scope layer(x.builder(), text("layers.", i));
    layer.stage(i == 0 ? 0 : 1);  // or of one op: x = linear(x, "up", 8).stage(1);
    x = linear(x, "up", 8);
  }
  return x;
}

constexpr const char* kPipelinesTest = "tests/docs/pipelines_test.cpp";

TEST(Pipelines, LayersArePlacedByNumberAndByMarks) {
  ModelConfig model;
  model.layers = 6;
  const PipelineStrategy strategy = strategy_of(by_number(model)).pipeline;
  ASSERT_EQ(strategy.pins.size(), 6u);
  EXPECT_EQ(strategy.pins[2].chunk, 0);
  EXPECT_EQ(strategy.pins[3].chunk, 1);

  Builder builder;
  const Value y = by_marks(builder.batch("x", {DType::F32, {4, 8}, {}}), 3);
  builder.output(Output::Kind::Metric, "y", y);
  const std::vector<ChunkPin> cut = cut_into_chunks(builder.finish(), {2});
  EXPECT_EQ(cut, (std::vector<ChunkPin>{{"layers.0", 0}, {"layers.1", 1}, {"layers.2", 1}}));
}

/// tessera plan --preset gpt2-tiny --vocab-size 65 --devices 2 --pipeline-model-parallel-size 2
/// --micro-batch-size 1
TEST(Pipelines, TheDocumentShowsWhatPlanSays) {
  RunConfig config;
  find_preset("gpt2-tiny").apply(config);
  config.model.vocabulary = 65;
  config.parallel.devices = config.parallel.pipeline = 2;
  config.micro_batch_size = 1;
  complete(config);
  const auto device = make_cpu_device({.threads = 1});
  const Compiled compiled =
      compile_programs(RunSetup(config), {.evaluate = false, .texts = 0, .stages = true}, *device);
  PlannedPipeline planned = *planned_pipeline(compiled, RunSetup(config));
  planned.facts.stages.clear();  // the arena depends on the processor
  expect_text("docs/guides/plan.md", kPipelinesTest, "pipeline", to_text(planned.report()));
}

TEST(Pipelines, ThePictureIsDrawn) {
  const std::string drawn = schedule_svg("1f1b", Pipeline(make_schedule("1f1b", {4, 1, 8})));
  const std::string path = repo_file("docs/pictures/1f1b.svg");
  if (std::getenv("TESSERA_ACCEPT") != nullptr) std::ofstream(path) << drawn;
  std::ostringstream bytes;
  bytes << std::ifstream(path).rdbuf();
  EXPECT_EQ(bytes.str(), drawn) << "TESSERA_ACCEPT=1 build/docs_test draws it again";
}

}  // namespace
}  // namespace tessera::test
