/// A train step cut into micro-batches computes what the whole step computes: interpreted in f64,
/// with dropout.

#include <gtest/gtest.h>

#include "tessera/passes/fuse.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

struct MicroCase {
  const char* family;
  std::int64_t microbatches;
  bool fused;
};

class Microbatch : public testing::TestWithParam<MicroCase> {};

TEST_P(Microbatch, EqualsTheWholeStep) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  const Graph graph = train_step(tiny(GetParam().family), optimizer, 12, 8);
  const Bindings inputs = random_inputs(graph);
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> whole = interpret(graph, inputs, how);
  Program program = partition(propagate(simplify(graph), one_device(GetParam().microbatches)));
  if (GetParam().fused) program = fuse(std::move(program));
  const std::map<std::string, HostTensor> cut = interpret_program(program, inputs, how);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Output& output = graph.outputs()[i];
    const HostTensor& other =
        cut.at(output.kind == Output::Kind::Next ? "next " + output.name : output.name);
    for (std::int64_t e = 0; e < other.numel(); ++e) {
      // Adam turns the zero gradient of a key bias into rounding noise of up to twice the learning
      // rate.
      const double bound = output.name.ends_with("qkv.bias") ? 2e-3 : 1e-10;
      ASSERT_NEAR(whole[i].at(e), other.at(e), bound) << output.name << " [" << e << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, Microbatch,
                         testing::Values(MicroCase{"gpt2", 1, false}, MicroCase{"gpt2", 1, true},
                                         MicroCase{"gpt2", 2, false}, MicroCase{"gpt2", 3, true},
                                         MicroCase{"gpt2", 12, true}, MicroCase{"llama", 1, true},
                                         MicroCase{"llama", 4, false}, MicroCase{"llama", 6, true}),
                         [](const auto& info) {
                           return std::string(info.param.family) +
                                  std::to_string(info.param.microbatches) +
                                  (info.param.fused ? "Fused" : "");
                         });

}  // namespace
}  // namespace tessera
