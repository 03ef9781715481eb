/// The train step on the CPU device, planned in one arena, against the interpreter: losses and all
/// states over some steps.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/ops/interpret.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/step.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

constexpr std::int64_t kBatch_ = 12, kLength = 8;
constexpr int kSteps = 4;

OptimizerConfig recipe(OptimizerKind kind) {
  OptimizerConfig c;
  c.kind = kind;
  c.schedule = {ScheduleKind::Cosine, 1e-2, 1e-3, 2, 8};
  return c;
}

struct Numbers {
  std::uint64_t n = 1;
  double next() {
    n = n * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(n >> 40) * 0x1p-24;
  }
};

struct ExecutorCase {
  const char* family;
  OptimizerKind optimizer;
  std::int64_t microbatches;
  int threads;
  bool optimize;
  bool pack = false;
  std::int64_t guard_bytes = 0;
};

class OnDevice : public testing::TestWithParam<ExecutorCase> {};

TEST_P(OnDevice, EqualsTheInterpreter) {
  const ExecutorCase& c = GetParam();
  const Graph graph = train_step(tiny(c.family), recipe(c.optimizer), kBatch_, kLength);
  const std::unique_ptr<Device> device = make_cpu_device({c.threads, -1, c.pack});
  CompileOptions options;
  options.optimize = Optimizations::all(c.optimize);
  options.guard_bytes = c.guard_bytes;
  Executor executor(compile({{"init", initialise(graph), one_device(1)},
                             {"train", graph, one_device(c.microbatches)}},
                            *device, options),
                    *device);
  UsedBytes used;
  executor.run("init", {.used_bytes = &used});
  std::int64_t highest = used.device;

  Bindings in;
  for (const State& state : graph.states()) {
    HostTensor value(graph.type(state.value));
    std::memcpy(value.bytes().data(), executor.read_state(state.path).bytes.data(),
                value.bytes().size());
    in.states.emplace(state.path, value);
  }
  Numbers numbers;
  for (int step = 0; step < kSteps; ++step) {
    HostTensor ids(DType::I32, {kBatch_, kLength}), labels(DType::I32, {kBatch_, kLength});
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      ids.set(i, std::floor(numbers.next() * 19));
      labels.set(i, numbers.next() < 0.2 ? -100 : std::floor(numbers.next() * 19));
    }
    in.batch["ids"] = ids;
    in.batch["labels"] = labels;
    const auto fill = [&](BatchInputs& batch) {
      for (const auto& [name, value] : in.batch)
        std::ranges::copy(value.bytes(), batch.fill(name, DType::I32).begin());
    };
    executor.run("train", fill, {.used_bytes = &used});
    highest = std::max(highest, used.device);
    EXPECT_TRUE(executor.guard_intact());
    Interpretation how;
    const std::vector<HostTensor> out = interpret(graph, in, how);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Output& output = graph.outputs()[i];
      if (output.kind == Output::Kind::Next) {
        in.states[output.name] = out[i];
      } else {
        // f32: sums in another order.
        EXPECT_NEAR(executor.scalar("train", output.name), out[i].at(0),
                    1e-5 * std::max(1.0, std::abs(out[i].at(0))))
            << output.name << " of step " << step;
      }
    }
  }
  EXPECT_EQ(highest, executor.plan().peak_bytes()) << "the plan is what was used, to the byte";
  for (const State& state : graph.states()) {
    HostTensor value(graph.type(state.value));
    std::memcpy(value.bytes().data(), executor.read_state(state.path).bytes.data(),
                value.bytes().size());
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      // Adam divides by the root of a squared gradient: where that is rounding noise, a step may
      // differ by twice its size.
      const bool noise =
          c.optimizer != OptimizerKind::Sgd && state.path.find("qkv.bias") != std::string::npos;
      ASSERT_NEAR(value.at(i), in.states.at(state.path).at(i), noise ? 8e-2 : 2e-4)
          << state.path << " [" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, OnDevice,
    testing::Values(ExecutorCase{"gpt2", OptimizerKind::AdamW, 1, 1, false},
                    ExecutorCase{"gpt2", OptimizerKind::AdamW, 1, 2, true},
                    ExecutorCase{"gpt2", OptimizerKind::Sgd, 3, 1, true},
                    ExecutorCase{"gpt2", OptimizerKind::Adam, 12, 3, true},
                    ExecutorCase{"gpt2", OptimizerKind::AdamWeightDecay, 3, 2, true},
                    ExecutorCase{"llama", OptimizerKind::AdamW, 1, 2, true},
                    ExecutorCase{"llama", OptimizerKind::AdamW, 4, 1, true},
                    ExecutorCase{"llama", OptimizerKind::Sgd, 6, 2, false},
                    ExecutorCase{"gpt2", OptimizerKind::AdamW, 1, 2, true, true},
                    ExecutorCase{"gpt2", OptimizerKind::AdamW, 3, 2, true, true},
                    ExecutorCase{"llama", OptimizerKind::AdamW, 4, 3, true, true},
                    ExecutorCase{"gpt2", OptimizerKind::AdamW, 3, 2, true, true, 64},
                    ExecutorCase{"gpt2", OptimizerKind::Sgd, 1, 1, false, false, 64},
                    ExecutorCase{"llama", OptimizerKind::Adam, 4, 3, true, false, 64},
                    ExecutorCase{"llama", OptimizerKind::Sgd, 1, 2, false, true, 64}));

}  // namespace
}  // namespace tessera
