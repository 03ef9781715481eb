/// A train step with LAMB: cut into micro-batches, in place, and falling losses.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/config/fields.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/plan/compile.h"
#include "tessera/train/step.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

Graph step(double dropout) {
  ModelConfig model;
  model.layers = 1;
  model.heads = 2;
  model.width = 8;
  model.context = 6;
  model.vocabulary = 11;
  model.dropout = dropout;
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerKind::Lamb;
  optimizer.eps = 1e-6;
  optimizer.weight_decay = 0.1;
  optimizer.schedule.kind = ScheduleKind::Constant;
  return train_step(model, optimizer, 6, 6);
}

Bindings inputs_of(const Graph& graph) {
  Bindings in;
  int n = 0;
  for (const State& state : graph.states()) {
    HostTensor value(graph.type(state.value));
    for (std::int64_t i = 0; i < value.numel() && state.role == Role::Parameter; ++i)
      value.set(i, 0.5 * std::sin(12.9898 * ++n));
    in.states.emplace(state.path, value);
  }
  HostTensor ids(DType::I32, {6, 6}), labels(DType::I32, {6, 6});
  for (std::int64_t i = 0; i < 36; ++i) {
    ids.set(i, static_cast<double>(i * 7 % 11));
    labels.set(i, static_cast<double>(i * 5 % 11));
  }
  in.batch = {{"ids", ids}, {"labels", labels}};
  return in;
}

TEST(LambStep, CutIntoMicrobatchesEqualsTheWhole) {
  const Graph graph = step(0.2);
  const Bindings inputs = inputs_of(graph);
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> whole = interpret(graph, inputs, how);
  const std::map<std::string, HostTensor> cut = interpret_program(
      partition(propagate(add_uses(simplify(graph)), one_device(3))), inputs, how);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Output& output = graph.outputs()[i];
    const HostTensor& other =
        cut.at(output.kind == Output::Kind::Next ? "next " + output.name : output.name);
    // The key bias has a gradient of rounding noise, whose direction is no number to compare; its
    // tensor, the packed bias, is moved by it.
    if (output.name.find("qkv.bias") != std::string::npos) continue;
    for (std::int64_t e = 0; e < other.numel(); ++e)
      ASSERT_NEAR(whole[i].at(e), other.at(e), 1e-10) << output.name << " [" << e << "]";
  }
}

TEST(LambStep, UpdatesMomentsInPlace) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan plan = compile({{"train", step(0), one_device(2)}}, *device);
  int directions = 0, updates = 0;
  const auto& update = plan.program("train").region(RegionKind::Update);
  for (const Call& call : update.calls) {
    updates += op_text(call) == "fused(mul,sub,select)";  // p - u * rate, where the step is made
    if (call.op->name != "lamb_direction") continue;
    ++directions;
    EXPECT_EQ(call.kernel->name(), "hwy:lamb");
    for (const std::size_t moment : {1, 2}) EXPECT_EQ(call.ins[moment], call.outs[moment]);
    EXPECT_EQ(call.ins[3], call.outs[0]) << "the direction lies in the gradient";
  }
  EXPECT_EQ(directions, 16);
  EXPECT_EQ(updates, 16);
}

struct Losses : TrainCallback {
  void on_step(const StepRecord& record) override { list.push_back(record.loss); }
  std::vector<double> list;
};

TEST_F(TrainerTest, LambLearns) {
  RunConfig c = config("lamb");
  set_text(*find_field("optimizer").field, c, "lamb", "a test");
  c.optimizer.schedule.lr = 0.02;
  c.optimizer.schedule.min_lr = 0;
  c.steps = 60;
  Losses losses;
  run(c, {{&losses}});
  ASSERT_EQ(losses.list.size(), 60u);
  // From the logarithm of the vocabulary's size to what the digits' randomness leaves.
  EXPECT_GT(losses.list.front(), 2.5);
  EXPECT_LT(losses.list.back(), 2.0);
}

}  // namespace
}  // namespace tessera
