/// A train step on a pipeline computes what one device computes: all ranks of all stages
/// interpreted in f64 with dropout, in the order of the schedule.

#include <gtest/gtest.h>

#include "tessera/nn/parallel.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

struct PipelineCase {
  const char* name;
  const char* family;
  const char* schedule;
  int stages, chunks;
  ParallelConfig parallel;  // of one stage
};

std::ostream& operator<<(std::ostream& out, const PipelineCase& c) { return out << c.name; }

std::vector<Program> stages_of(const Graph& graph, const PipelineCase& c) {
  Strategy strategy = strategy_of(c.parallel);
  strategy.pipeline = {c.stages, c.chunks, c.schedule};
  const Graph simple = simplify(graph);
  const Graph placed =
      propagate(place_chunks(simple, cut_into_chunks(simple, strategy.pipeline)), strategy);
  const Pipeline pipeline(
      make_schedule(c.schedule, {c.stages, c.chunks, strategy.mesh.size(kMicrobatchAxis)}));
  std::vector<Program> out;
  for (int stage = 0; stage < c.stages; ++stage)
    out.push_back(fuse(partition(placed, pipeline, stage)));
  return out;
}

class PipelineStep : public testing::TestWithParam<PipelineCase> {};

TEST_P(PipelineStep, EqualsOneDevice) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  ModelConfig model = tiny(GetParam().family);
  model.layers = 6;
  const Graph graph = with_gradients(train_step(model, optimizer, 12, 8));
  const Bindings inputs = random_inputs(graph);
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> whole = interpret(graph, inputs, how);
  const auto cut = interpret_stages(stages_of(graph, GetParam()), inputs, how);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Output& output = graph.outputs()[i];
    const auto found =
        cut.find(output.kind == Output::Kind::Next ? "next " + output.name : output.name);
    ASSERT_NE(found, cut.end()) << output.name;
    for (std::int64_t e = 0; e < whole[i].numel(); ++e) {
      // Adam turns the zero gradient of a key bias into rounding noise of up to twice the learning
      // rate.
      const double bound = output.name.ends_with("qkv.bias") ? 2e-3 : 1e-10;
      ASSERT_NEAR(whole[i].at(e), found->second.at(e), bound) << output.name << " [" << e << "]";
    }
  }
}

ParallelConfig cut(std::int64_t micro_batches, std::int64_t dp = 1, std::int64_t tp = 1,
                   int level = 0, std::int64_t cp = 1, bool sequence = false) {
  return {.devices = dp * tp * cp,
          .tensor = tp,
          .context = cp,
          .sequence = sequence,
          .shard_optimizer = level > 0,
          .shard_gradients = level > 1,
          .shard_parameters = level > 2,
          .micro_batches = micro_batches};
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, PipelineStep,
    testing::Values(PipelineCase{"Gpipe2", "gpt2", "gpipe", 2, 1, cut(4)},
                    PipelineCase{"One2", "gpt2", "1f1b", 2, 1, cut(4)},
                    PipelineCase{"One2Mb1", "gpt2", "1f1b", 2, 1, cut(1)},
                    PipelineCase{"One3Mb2", "llama", "1f1b", 3, 1, cut(2)},
                    PipelineCase{"One4Mb12", "gpt2", "1f1b", 4, 1, cut(12)},
                    PipelineCase{"Interleaved2", "gpt2", "interleaved", 2, 2, cut(4)},
                    PipelineCase{"Interleaved3x3Mb6", "llama", "interleaved", 3, 3, cut(6)},
                    PipelineCase{"ZbH1", "gpt2", "zb-h1", 3, 1, cut(4)},
                    PipelineCase{"ZbV", "gpt2", "zb-v", 2, 2, cut(4)},
                    PipelineCase{"ZbV4", "llama", "zb-v", 4, 2, cut(6)},
                    PipelineCase{"Interleaved1", "gpt2", "interleaved", 1, 2, cut(2)},
                    PipelineCase{"ZbV1", "gpt2", "zb-v", 1, 2, cut(1)},
                    PipelineCase{"Dp2", "gpt2", "1f1b", 2, 1, cut(3, 2)},
                    PipelineCase{"Tp2", "gpt2", "1f1b", 2, 1, cut(4, 1, 2)},
                    PipelineCase{"Tp2Sp", "llama", "zb-h1", 2, 1, cut(4, 1, 2, 0, 1, true)},
                    PipelineCase{"Cp2", "gpt2", "interleaved", 2, 2, cut(4, 1, 1, 0, 2)},
                    PipelineCase{"Zero1", "gpt2", "1f1b", 3, 1, cut(4, 2, 1, 1)},
                    PipelineCase{"Zero2", "llama", "gpipe", 2, 1, cut(3, 2, 1, 2)},
                    PipelineCase{"Zero3", "gpt2", "zb-v", 2, 2, cut(4, 2, 1, 3)},
                    PipelineCase{"Dp3Tp2Zero2Uneven", "gpt2", "zb-h1", 2, 1, cut(2, 3, 2, 2)}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera
