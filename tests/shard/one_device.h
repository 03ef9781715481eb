#pragma once
/// A step spread by AutoParallel, against one device.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/models/family.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/optimizer.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/shard/auto_parallel.h"

namespace tessera::test {

inline Graph placed_of(const Graph& step, const AutoParallel& options) {
  const ParallelStep spread = parallelize(step, options);
  return propagate(add_uses(simplify(merge_pads(spread.graph))), spread.strategy);
}

inline Bindings random_inputs(const Graph& graph, std::int64_t rows_of_table) {
  Bindings in;
  std::uint64_t n = 1;
  const auto next = [&n] {
    n = n * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(n >> 40) * 0x1p-24;
  };
  for (const Node& node : graph.nodes()) {
    if (node.op != &kBatch && node.op != &kState) continue;
    const std::string& path = std::get<std::string>(node.attrs[0]);
    HostTensor value(node.type());
    const State* state = nullptr;
    for (const State& s : graph.states()) {
      if (node.op == &kState && s.path == path) state = &s;
    }
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      if (state != nullptr && state->role != Role::Parameter) continue;  // counters and moments: 0
      value.set(i, is_float(value.dtype())
                       ? next() - 0.5
                       : std::floor(next() * static_cast<double>(rows_of_table)));
    }
    (state == nullptr ? in.batch : in.states).emplace(path, value);
  }
  return in;
}

/// Every output of the step, all ranks interpreted in f64 with the padding of shards poisoned.
inline void expect_equals_one_device(const Graph& step, const AutoParallel& options,
                                     std::int64_t rows_of_table = 1) {
  const Bindings inputs = random_inputs(step, rows_of_table);
  Interpretation how;
  how.f64 = true;
  // Constants are folded in f32: on both sides, then.
  const std::vector<HostTensor> whole = interpret(simplify(merge_pads(step)), inputs, how);
  const auto cut = interpret_program(partition(placed_of(step, options)), inputs, how);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Output& output = step.outputs()[i];
    const HostTensor& other =
        cut.at(output.kind == Output::Kind::Next ? "next " + output.name : output.name);
    ASSERT_EQ(whole[i].numel(), other.numel()) << output.name;
    for (std::int64_t e = 0; e < other.numel(); ++e) {
      // Adam turns the zero gradient of a key bias into rounding noise of up to twice the rate.
      const double bound = output.name.ends_with("qkv.bias") ? 2e-3 : 1e-10;
      ASSERT_NEAR(whole[i].at(e), other.at(e), bound) << output.name << " [" << e << "]";
    }
  }
}

inline constexpr std::int64_t kVocabulary = 24;

/// GPT-2 of one block.
inline Graph gpt2_step() {
  ModelConfig c;
  c.layers = 1;
  c.heads = 4;
  c.width = 16;
  c.context = 8;
  c.vocabulary = kVocabulary;
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {8, 8}, {}}),
              labels = builder.batch("labels", {DType::I32, {8, 8}, {}}),
              samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  const Value loss = cross_entropy_mean(task_of(c).text->logits(ids, {}), labels).value();
  std::vector<Value> all;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) all.emplace_back(builder, state.value);
  }
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  update(all, gradients(loss, all), loss, samples, 8, optimizer);
  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}

}  // namespace tessera::test
