/// A train step on any mesh computes what one device computes: all ranks interpreted in f64 with
/// dropout, the padding of shards poisoned, replicas compared to the bit.

#include <gtest/gtest.h>

#include "tessera/nn/parallel.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

struct StepCase {
  const char* name;
  const char* family;
  ParallelConfig parallel;
};

std::ostream& operator<<(std::ostream& out, const StepCase& c) { return out << c.name; }

class MeshStep : public testing::TestWithParam<StepCase> {};

TEST_P(MeshStep, EqualsOneDevice) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  const Graph graph = train_step(tiny(GetParam().family), optimizer, 12, 8);
  const Bindings inputs = random_inputs(graph);
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> whole = interpret(graph, inputs, how);
  const Program program =
      fuse(partition(propagate(simplify(graph), strategy_of(GetParam().parallel))));
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

ParallelConfig data(std::int64_t n, int level = 0) {
  return {.devices = n,
          .shard_optimizer = level > 0,
          .shard_gradients = level > 1,
          .shard_parameters = level > 2};
}
ParallelConfig tensor(std::int64_t n, bool sequence = false) {
  return {.devices = n, .tensor = n, .sequence = sequence};
}
ParallelConfig mixed(std::int64_t devices, std::int64_t tp, std::int64_t cp, bool sequence,
                     int level, std::int64_t micro_batches) {
  return {.devices = devices,
          .tensor = tp,
          .context = cp,
          .sequence = sequence,
          .shard_optimizer = level > 0,
          .shard_gradients = level > 1,
          .shard_parameters = level > 2,
          .micro_batches = micro_batches};
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, MeshStep,
    testing::Values(StepCase{"One", "gpt2", {}}, StepCase{"Dp2", "gpt2", data(2)},
                    StepCase{"Dp3", "gpt2", data(3)}, StepCase{"Dp5Uneven", "gpt2", data(5)},
                    StepCase{"Dp8Uneven", "llama", data(8)}, StepCase{"Zero1", "gpt2", data(2, 1)},
                    StepCase{"Zero2", "gpt2", data(4, 2)}, StepCase{"Zero3", "gpt2", data(3, 3)},
                    StepCase{"Tp2", "gpt2", tensor(2)}, StepCase{"Tp4", "gpt2", tensor(4)},
                    StepCase{"Tp2Llama", "llama", tensor(2)},
                    StepCase{"Tp2Sp", "gpt2", tensor(2, true)},
                    StepCase{"Tp2SpLlama", "llama", tensor(2, true)},
                    StepCase{"Cp2", "gpt2", mixed(2, 1, 2, false, 0, 1)},
                    StepCase{"Cp2Llama", "llama", mixed(2, 1, 2, false, 0, 1)},
                    StepCase{"Cp2Tp2Dp2", "gpt2", mixed(8, 2, 2, true, 3, 2)},
                    StepCase{"Dp2Tp2SpZero1Mb2", "gpt2", mixed(4, 2, 1, true, 1, 2)},
                    StepCase{"Dp2Tp2Zero2Mb3", "llama", mixed(4, 2, 1, false, 2, 3)},
                    StepCase{"Dp3Mb4Zero3Uneven", "gpt2", mixed(3, 1, 1, false, 3, 4)},
                    StepCase{"Dp5Mb2Zero2Uneven", "llama", mixed(5, 1, 1, false, 2, 2)}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera
