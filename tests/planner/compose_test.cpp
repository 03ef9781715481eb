/// Models put together from short ones against the same compiled whole.

#include "tessera/planner/compose.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/text.h"
#include "tessera/device/device.h"
#include "tessera/plan/predict.h"
#include "tessera/planner/space.h"
#include "tessera/train/programs.h"

namespace tessera {
namespace {

RunConfig run_of(std::int64_t layers) {
  RunConfig out;
  out.model.layers = layers;
  out.model.heads = 4;
  out.model.width = 128;
  out.model.context = 64;
  out.model.vocabulary = 512;
  out.global_batch_size = 32;
  out.held_out = 0;
  out.threads = 1;
  complete(out);
  return out;
}

TEST(Compose, ComesCloseToTheWhole) {
  const auto device = make_cpu_device({.threads = 1});
  const RunConfig base = run_of(12);
  const Machine machine = base.parallel.machine;
  ShortModels models(base, machine, [&](const RunConfig&) -> Device& { return *device; });
  Composer composer({12}, machine);
  const Space space(base, 16, false);
  const PlanChoice choices[] = {
      {.data = 2, .micro_batch_size = 4},
      {.data = 2, .micro_batch_size = 16},
      {.data = 2, .tensor = 2, .sequence = true, .micro_batch_size = 2, .zero = 1},
      {.data = 2, .pipeline = 2, .micro_batch_size = 2, .zero = 2},
      {.data = 2, .pipeline = 4, .micro_batch_size = 1, .zero = 3},
      {.pipeline = 4, .micro_batch_size = 4, .recompute = Recompute::Full},
      {.data = 1, .pipeline = 4, .schedule = "zb-h1", .micro_batch_size = 2},
      {.data = 1, .pipeline = 2, .schedule = "zb-v", .chunks = 2, .micro_batch_size = 2},
      {.data = 1, .pipeline = 2, .schedule = "interleaved", .chunks = 3, .micro_batch_size = 2},
      {.data = 2, .micro_batch_size = 4, .offload = {.moments = true, .activations = true}}};
  for (const PlanChoice& each : choices) {
    const std::int64_t m = space.micro_batches(each);
    const ModelUse* use = models.of(each, m);
    ASSERT_NE(use, nullptr) << to_text(each);
    const Composition composed = composer.compose(each, {use, use}, m, {});
    PlanChoice choice = each;
    if (each.pipeline > 1) choice.layout = composed.layout;
    const RunConfig run = with(base, choice);
    const Compiled compiled =
        compile_programs(RunSetup(run), {.evaluate = false, .texts = 0, .stages = true}, *device);
    const std::vector<const Plan*> plans = plans_of(compiled);
    const double seconds =
        predict(plans, kTrainProgram, pipeline_of(plans, kTrainProgram), machine).seconds;
    EXPECT_NEAR(composed.seconds / seconds, 1, 0.02) << to_text(choice);
    for (std::size_t s = 0; s < plans.size(); ++s) {
      // With zb-v a stage has both ends of the model, which are not at their fullest together.
      const double near = each.schedule == "zb-v" ? 0.11 : 0.05;
      EXPECT_NEAR(composed.stage_bytes[s] / static_cast<double>(plans[s]->peak_bytes()), 1, near)
          << to_text(choice) << ", stage " << s;
    }
  }
}

/// The ends are heavy: the stages that have them get fewer layers.
TEST(Compose, CutsWhereTheSlowestStageIsFastest) {
  const auto device = make_cpu_device({.threads = 1});
  RunConfig base = run_of(12);
  base.model.vocabulary = 16'384;
  ShortModels models(base, base.parallel.machine,
                     [&](const RunConfig&) -> Device& { return *device; });
  Composer composer({12}, base.parallel.machine);
  const PlanChoice choice{.pipeline = 3, .micro_batch_size = 2};
  const ModelUse* use = models.of(choice, 16);
  ASSERT_NE(use, nullptr);
  const Composition composed = composer.compose(choice, {use, use}, 16, {});
  EXPECT_LT(composed.layout.back(), composed.layout[1]);
  EXPECT_EQ(composed.layout[0] + composed.layout[1] + composed.layout[2], 12);
}

}  // namespace
}  // namespace tessera
