/// Mixed precision: what it computes, and what it leaves in f32.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tessera/passes/compute_in.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "train/executor_states.h"
#include "train/tiny_step.h"
#include "worst.h"

namespace tessera {
namespace {

OptimizerConfig constant_rate() {
  OptimizerConfig out;
  out.schedule.kind = ScheduleKind::Constant;
  return out;
}

std::map<std::string, HostTensor> outputs(const Graph& graph, const Bindings& inputs, bool f64) {
  Interpretation how;
  how.f64 = f64;
  const std::vector<HostTensor> values = interpret(graph, inputs, how);
  std::map<std::string, HostTensor> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Output& output = graph.outputs()[i];
    out.emplace(text(output.kind == Output::Kind::Next ? "next " : "", output.name), values[i]);
  }
  return out;
}

/// Without rounding, the step in bf16 gives the numbers of that in f32, and copies of its
/// parameters.
void expect_nothing_but_rounding(const Graph& f32, const Task& task) {
  const Graph bf16 = compute_in(f32, {});
  const Bindings inputs = random_inputs(bf16, task);
  const auto want = outputs(f32, inputs, true), got = outputs(bf16, inputs, true);
  for (const auto& [name, value] : want) {
    SCOPED_TRACE(name);
    ASSERT_EQ(to_text(got.at(name).type()), to_text(value.type()));
    for (std::int64_t i = 0; i < value.numel(); ++i)
      ASSERT_NEAR(got.at(name).at(i), value.at(i), 1e-10);
  }
  int copies = 0;
  for (const State& state : bf16.states()) {
    if (state.role != Role::Copy) continue;
    ++copies;
    const std::string parameter = state.path.substr(0, state.path.rfind('.'));
    EXPECT_EQ(state.path, parameter + ".bf16");
    const HostTensor &copy = got.at("next " + state.path), &of = want.at("next " + parameter);
    for (std::int64_t i = 0; i < copy.numel(); ++i) ASSERT_EQ(copy.at(i), of.at(i)) << parameter;
  }
  EXPECT_GT(copies, 10);
}

class SixteenBitStep : public testing::TestWithParam<const char*> {
 protected:
  SixteenBitStep()
      : task_(task_of(tiny(GetParam()))),
        f32_(with_gradients(train_step(task_, constant_rate(), 12))) {}

  Task task_;
  Graph f32_;
};

TEST_P(SixteenBitStep, ChangesNothingButRounding) { expect_nothing_but_rounding(f32_, task_); }

/// Whatever the optimizer, copies follow what becomes of the parameter. (AdamW is that of all other
/// tests here.)
TEST(SixteenBitOptimizers, ChangeNothingButRounding) {
  const Task task = task_of(tiny("gpt2"));
  const std::pair<const char*, OptimizerKind> kinds[] = {
      {"adam", OptimizerKind::Adam},
      {"sgd", OptimizerKind::Sgd},
      {"lamb", OptimizerKind::Lamb},
      {"adam-weight-decay", OptimizerKind::AdamWeightDecay}};
  for (const auto& [name, kind] : kinds) {
    SCOPED_TRACE(name);
    OptimizerConfig optimizer = constant_rate();
    optimizer.kind = kind;
    expect_nothing_but_rounding(with_gradients(train_step(task, optimizer, 12)), task);
  }
}

TEST_P(SixteenBitStep, RoundsAndStaysNear) {
  const Graph bf16 = compute_in(f32_, {});
  const Bindings inputs = random_inputs(bf16, task_);
  const double want = outputs(f32_, inputs, false).at("loss").at(0),
               got = outputs(bf16, inputs, false).at("loss").at(0);
  EXPECT_NE(got, want);
  EXPECT_NEAR(got, want, 0.02 * want);
}

/// The kernels of the device, all micro-batches together, against the references, which round
/// where kernels do: what is left are sums in another order, each then rounded. A weight's
/// gradient has noise of the largest one's size, as all come from the same rounded activations.
/// Without AVX512-BF16, by which attention rounds inside too.
TEST_P(SixteenBitStep, TheDeviceComputesIt) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const std::int64_t microbatches : {1, 3}) {
      SCOPED_TRACE(text(dtype, ", micro-batches: ", microbatches));
      OptimizerConfig config = constant_rate();
      config.loss_scale = {.on = dtype == DType::F16, .initial = 64};
      const Graph graph = compute_in(with_gradients(train_step(task_, config, 12)),
                                     {.compute = dtype, .sums = DType::F32});
      const Bindings inputs = random_inputs(graph, task_);
      const auto want = outputs(graph, inputs, false);
      const std::unique_ptr<Device> device =
          make_cpu_device({.threads = 2, .choices = machine_choices().at_most(Isa::Avx512)});
      Executor executor(compile({{"train", graph, one_device(microbatches)}}, *device), *device);
      set_states(executor, graph, inputs);
      executor.run("train", [&](BatchInputs& in) {
        for (const auto& [name, tensor] : inputs.batch)
          std::ranges::copy(tensor.bytes(), in.fill(name, tensor.dtype()).begin());
      });
      double largest = 0;
      for (const auto& [name, value] : want) {
        for (std::int64_t i = 0; name.starts_with("gradient ") && i < value.numel(); ++i)
          largest = std::max(largest, std::abs(value.at(i)));
      }
      const double bound = dtype == DType::BF16 ? 0.02 : 0.0025;
      int gradients = 0;
      for (const auto& [name, value] : want) {
        if (!name.starts_with("gradient ")) continue;
        ++gradients;
        const HostTensor got = executor.metric("train", name);
        double worst = 0, own = 0;
        for (std::int64_t i = 0; i < value.numel(); ++i) {
          worst = worse_of(worst, std::abs(got.at(i) - value.at(i)));
          own = std::max(own, std::abs(value.at(i)));
        }
        EXPECT_LT(worst, bound * std::max(own, 0.1 * largest)) << name << ", largest " << own;
      }
      EXPECT_GT(gradients, 10);
      EXPECT_NEAR(executor.scalar("train", "loss"), want.at("loss").at(0), bound);
      EXPECT_EQ(executor.scalar("train", "ok"), 1);
    }
  }
}

/// With all that the machine has, where kernels may round inside: gradients of bf16 are no further
/// from those without rounding than twice as far as the references' are, all of a model together.
TEST_P(SixteenBitStep, RoundingInsideKeepsTheDistanceFromNoRounding) {
  const Graph graph = compute_in(with_gradients(train_step(task_, constant_rate(), 12)), {});
  const Bindings inputs = random_inputs(graph, task_);
  const auto exact = outputs(graph, inputs, true), rounded = outputs(graph, inputs, false);
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  Executor executor(compile({{"train", graph, one_device(1)}}, *device), *device);
  set_states(executor, graph, inputs);
  executor.run("train", [&](BatchInputs& in) {
    for (const auto& [name, tensor] : inputs.batch)
      std::ranges::copy(tensor.bytes(), in.fill(name, tensor.dtype()).begin());
  });
  const auto squares = [](const HostTensor& x, const HostTensor* less) {
    double out = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double d = x.at(i) - (less == nullptr ? 0 : less->at(i));
      out += d * d;
    }
    return out / static_cast<double>(x.numel());
  };
  double largest = 0;
  for (const auto& [name, value] : exact) {
    if (name.starts_with("gradient ")) largest = std::max(largest, squares(value, nullptr));
  }
  double of_device = 0, of_references = 0;
  for (const auto& [name, value] : exact) {
    if (!name.starts_with("gradient ")) continue;
    const double size = std::max(squares(value, nullptr), 0.01 * largest);
    of_device += squares(executor.metric("train", name), &value) / size;
    of_references += squares(rounded.at(name), &value) / size;
  }
  EXPECT_GT(of_references, 0);
  EXPECT_LT(std::sqrt(of_device), 2 * std::sqrt(of_references));
}

/// Of a plan: calls that write into the memory of a copy what is not that copy.
int calls_in_copies(const Plan& plan) {
  int out = 0;
  for (const RegionPlan& region : plan.program("train").regions) {
    for (const Call& call : region.calls) {
      out += static_cast<int>(std::ranges::count_if(call.outs, [&](const Place& place) {
        const bool copy = std::ranges::any_of(
            plan.states, [&](const StatePlan& state) { return state.place == place; });
        return place.section == Place::Section::Work && place.offset < 0 && !copy;
      }));
    }
  }
  return out;
}

/// Copies are idle from the end of backward to their update, and others lie there: with the same
/// bits as where nothing shares memory.
TEST_P(SixteenBitStep, UsesTheMemoryOfIdleCopies) {
  const Graph graph = compute_in(train_step(task_, constant_rate(), 12), {});
  const Bindings inputs = random_inputs(graph, task_);
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  for (const std::int64_t microbatches : {1, 3}) {
    SCOPED_TRACE(text("micro-batches: ", microbatches));
    std::vector<std::map<std::string, HostTensor>> after;
    for (const bool shares : {true, false}) {
      CompileOptions options;
      options.optimize.shares_buffers = shares;
      options.guard_bytes = shares ? 64 : 0;
      Plan plan = compile({{"train", graph, one_device(microbatches)}}, *device, options);
      const int lent = calls_in_copies(plan);
      if (!shares) {
        EXPECT_EQ(lent, 0);
      } else if (microbatches == 1) {
        EXPECT_GT(lent, 0);
      }
      Executor executor(std::move(plan), *device, nullptr, {.poison = true});
      set_states(executor, graph, inputs);
      for (int step = 0; step < 2; ++step) {
        executor.run("train", [&](BatchInputs& in) {
          for (const auto& [name, tensor] : inputs.batch)
            std::ranges::copy(tensor.bytes(), in.fill(name, tensor.dtype()).begin());
        });
      }
      std::map<std::string, HostTensor>& states = after.emplace_back();
      for (const State& state : graph.states()) {
        HostTensor value(graph.type(state.value));
        std::ranges::copy(executor.read_state(state.path).bytes, value.bytes().begin());
        states.emplace(state.path, value);
      }
    }
    for (const auto& [path, value] : after[0])
      EXPECT_TRUE(std::ranges::equal(value.bytes(), after[1].at(path).bytes())) << path;
  }
}

/// A step that overflows changes no parameter, and leaves the copies of all, though other values
/// lay in their place.
TEST_P(SixteenBitStep, ASkippedStepKeepsParametersAndMakesTheirCopies) {
  OptimizerConfig config = constant_rate();
  config.loss_scale = {.on = true, .initial = 0x1p40};
  const Graph graph =
      compute_in(train_step(task_, config, 12), {.compute = DType::F16, .sums = DType::F32});
  const Bindings inputs = random_inputs(graph, task_);
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  Plan plan = compile({{"train", graph, one_device(1)}}, *device);
  EXPECT_GT(calls_in_copies(plan), 0);
  Executor executor(std::move(plan), *device, nullptr, {.poison = true});
  set_states(executor, graph, inputs);
  executor.run("train", [&](BatchInputs& in) {
    for (const auto& [name, tensor] : inputs.batch)
      std::ranges::copy(tensor.bytes(), in.fill(name, tensor.dtype()).begin());
  });
  ASSERT_EQ(executor.scalar("train", "ok"), 0);
  for (const State& state : graph.states()) {
    if (state.role != Role::Copy) continue;
    const std::string parameter = state.path.substr(0, state.path.rfind('.'));
    const HostTensor& before = inputs.states.find(parameter)->second;
    EXPECT_TRUE(std::ranges::equal(executor.read_state(parameter).bytes, before.bytes()))
        << parameter;
    EXPECT_TRUE(
        std::ranges::equal(executor.read_state(state.path).bytes, before.cast(DType::F16).bytes()))
        << parameter;
  }
}

/// Where parameters are most of a step, it takes 4 bytes of each, 8 of moments, 4 of its gradient
/// and 2 of its copy, but not all at one time.
TEST(CopiesOfParameters, TakeNoMemoryBesideGradients) {
  ModelConfig model = tiny("gpt2");
  model.width = 128, model.ffn_width = 512, model.context = 4;
  const Task task = task_of(model);
  const Graph f32 = train_step(task, constant_rate(), 1);
  std::int64_t numbers = 0;
  for (const State& state : f32.states())
    numbers += state.role == Role::Parameter ? f32.type(state.value).numel() : 0;
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const auto bytes = [&](const Graph& graph, bool shares) {
    CompileOptions options;
    options.optimize.shares_buffers = shares;
    return static_cast<double>(
               compile({{"train", graph, one_device(1)}}, *device, options).peak_bytes()) /
           static_cast<double>(numbers);
  };
  EXPECT_LT(bytes(f32, true), 16.5);
  EXPECT_LT(bytes(compute_in(f32, {}), true), 17);
  EXPECT_GT(bytes(compute_in(f32, {}), false), 18);
}

/// Products in 16 bits, but none in the update; sums of gradients, losses and updates in f32.
TEST_P(SixteenBitStep, EachOpHasItsFloats) {
  const Graph bf16 = compute_in(f32_, {});
  int rounded = 0, exact = 0;
  for (NodeId id = 0; id < bf16.size(); ++id) {
    const Node& node = bf16.node(id);
    SCOPED_TRACE(describe(bf16, id));
    if (node.op->arithmetic == Arithmetic::Narrow) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const DType dtype = bf16.type(node.inputs[i]).dtype;
        const bool statistic = (node.op->statistics >> i & 1) != 0;
        EXPECT_TRUE(!is_float(dtype) || (dtype == DType::F32) == statistic) << "operand " << i;
      }
      rounded += node.type().dtype == DType::BF16;
      exact += node.type().dtype == DType::F32;
    }
    const bool casts = node.op->name == "cast";
    for (const ValueId input : node.inputs) {
      const bool narrow_input = is_16_bit(bf16.type(input).dtype);
      const bool may = casts || node.op->arithmetic == Arithmetic::FromAny;
      EXPECT_FALSE(narrow_input && node.phase == Phase::Update && !may);
      EXPECT_FALSE(narrow_input && node.op->name == "grad");
    }
  }
  EXPECT_GT(rounded, 20);
  EXPECT_GT(exact, 5);  // gradients of weights
  for (const Output& output : bf16.outputs()) {
    if (output.kind != Output::Kind::Metric) continue;
    EXPECT_FALSE(is_16_bit(bf16.type(output.value).dtype)) << output.name;
  }
}

/// What is added up over micro-batches and ranks: no gradient has been rounded before, or each has.
TEST_P(SixteenBitStep, GradientsAreAddedUpInWhatIsAskedFor) {
  for (const DType sums : {DType::F32, DType::BF16}) {
    const Graph bf16 = compute_in(f32_, {.compute = DType::BF16, .sums = sums});
    int gradients = 0, casts = 0;
    for (NodeId id = 0; id < bf16.size(); ++id) {
      const Node& node = bf16.node(id);
      if (node.op->name != "grad") continue;
      ++gradients;
      EXPECT_EQ(node.type().dtype, sums) << describe(bf16, id);
      casts += bf16.node(node.inputs[0].node).op->name == "cast";
    }
    EXPECT_GT(gradients, 10);
    // Each sum has had its dtype from the beginning.
    EXPECT_TRUE(sums == DType::BF16 || casts == 0) << casts;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SixteenBitStep,
                         testing::Values("gpt2", "llama", "bert", "bert-masked", "electra",
                                         "bert-classes", "bert-tags", "bert-spans", "bert-alone",
                                         "bert-sentences", "bert-choices", "gpt2-classes",
                                         "roberta", "albert", "vit", "transformer",
                                         "transformer_post", "t5", "t5_relu", "bart"),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace tessera
