/// Parameter groups in whole training steps: a regression written out by hand, and meshes.

#include <gtest/gtest.h>

#include "tessera/nn/parameter_groups.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "train/one_device.h"

namespace tessera {
namespace {

constexpr std::int64_t kSamplesByHand = 5, kInputsByHand = 3;
constexpr double kRateByHand = 0.05, kBeta1 = 0.9, kBeta2 = 0.99, kEps = 1e-6;

OptimizerConfig regression_recipe() {
  OptimizerConfig c;
  c.kind = OptimizerKind::AdamW;
  c.beta1 = kBeta1, c.beta2 = kBeta2, c.eps = kEps;
  c.clip = 0;
  c.schedule = {.kind = ScheduleKind::Constant, .lr = kRateByHand};
  c.groups = {{.paths = {"weight"}, .weight_decay = 0.3, .lr_scale = 0.5},
              {.paths = {"bias"}, .weight_decay = 0.2, .lr_scale = 2}};
  return c;
}

/// mean((x w + b - y)^2) over all rows.
Graph regression() {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {kSamplesByHand, kInputsByHand}, {}});
  const Value y = builder.batch("y", {DType::F32, {kSamplesByHand, 1}, {}});
  const Value w =
      builder.state("weight", {DType::F32, {kInputsByHand, 1}, {}}, Role::Parameter, {});
  const Value b = builder.state("bias", {DType::F32, {1}, {}}, Role::Parameter, {});
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  const Value wrong = matmul(x, w) + b - y;
  const Value loss = sum_all(wrong * wrong) / static_cast<double>(kSamplesByHand);
  update({w, b}, gradients(loss, {w, b}), loss, samples, kSamplesByHand, regression_recipe());
  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}

/// One number that AdamW moves.
struct ByHand {
  double p, rate, decay, m = 0, v = 0;
  void step(double g, int t) {
    m = kBeta1 * m + (1 - kBeta1) * g;
    v = kBeta2 * v + (1 - kBeta2) * g * g;
    const double m_hat = m / (1 - std::pow(kBeta1, t)), v_hat = v / (1 - std::pow(kBeta2, t));
    p -= rate * (m_hat / (std::sqrt(v_hat) + kEps) + decay * p);
  }
};

TEST(GroupedStep, LossesAndParametersEqualARegressionByHand) {
  const Graph graph = regression();
  Bindings in;
  for (const State& state : graph.states()) {
    const TensorType& type = graph.type(state.value);
    in.states.emplace(state.path,
                      HostTensor(type.dtype == DType::F32 ? DType::F64 : type.dtype, type.shape));
  }
  std::vector<ByHand> w;
  for (std::int64_t i = 0; i < kInputsByHand; ++i) {
    w.push_back({std::cos(static_cast<double>(i)), kRateByHand * 0.5, 0.3});
    in.states.at("weight").set(i, w.back().p);
  }
  ByHand b{0.7, kRateByHand * 2, 0.2};
  in.states.at("bias").set(0, b.p);
  HostTensor x(DType::F64, {kSamplesByHand, kInputsByHand}), y(DType::F64, {kSamplesByHand, 1});
  for (int t = 1; t <= 5; ++t) {
    for (std::int64_t i = 0; i < x.numel(); ++i)
      x.set(i, std::sin(3.7 * static_cast<double>(i * t)));
    for (std::int64_t i = 0; i < y.numel(); ++i)
      y.set(i, std::cos(1.3 * static_cast<double>(i + t)));
    in.batch = {{"x", x}, {"y", y}};
    Interpretation how;
    how.f64 = true;
    const std::vector<HostTensor> out = interpret(graph, in, how);

    double loss = 0, of_b = 0;
    std::vector<double> of_w(kInputsByHand, 0.0);
    for (std::int64_t row = 0; row < kSamplesByHand; ++row) {
      double wrong = b.p - y.at(row);
      for (std::int64_t i = 0; i < kInputsByHand; ++i)
        wrong += x.at(row * kInputsByHand + i) * w[static_cast<std::size_t>(i)].p;
      loss += wrong * wrong / kSamplesByHand;
      of_b += 2 * wrong / kSamplesByHand;
      for (std::int64_t i = 0; i < kInputsByHand; ++i)
        of_w[static_cast<std::size_t>(i)] +=
            2 * wrong * x.at(row * kInputsByHand + i) / kSamplesByHand;
    }
    for (std::size_t i = 0; i < w.size(); ++i) w[i].step(of_w[i], t);
    b.step(of_b, t);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Output& output = graph.outputs()[i];
      if (output.kind == Output::Kind::Next) in.states.insert_or_assign(output.name, out[i]);
      if (output.name != "loss") continue;
      EXPECT_NEAR(out[i].at(0), loss, 1e-13) << "step " << t;
    }
    for (std::size_t i = 0; i < w.size(); ++i)
      EXPECT_NEAR(in.states.at("weight").at(static_cast<std::int64_t>(i)), w[i].p, 1e-13);
    EXPECT_NEAR(in.states.at("bias").at(0), b.p, 1e-13) << "step " << t;
  }
}

/// The norms, biases and embeddings have groups of their own.
OptimizerConfig transformer_groups(OptimizerKind kind) {
  OptimizerConfig c;
  c.kind = kind;
  c.schedule.lr = 0x1p-10;  // exact in f32, to which f64 runs of fused graphs may round it
  c.groups = decay_groups();
  c.groups.push_back({.paths = {"embed.*"}, .weight_decay = 0.2, .lr_scale = 0.5});
  return c;
}

TEST(GroupedStep, MeshesEqualOneDevice) {
  struct Row {
    const char *name, *family;
    OptimizerKind kind;
    ParallelConfig parallel;
  };
  const Row rows[] = {
      {"ZeRO-1", "gpt2", OptimizerKind::AdamW, parallel_of(2, 1, 1, false, 1, 2)},
      {"ZeRO-2, uneven", "gpt2", OptimizerKind::AdamWeightDecay, parallel_of(3, 1, 1, false, 2, 2)},
      {"ZeRO-3", "llama", OptimizerKind::AdamWeightDecay, parallel_of(4, 1, 1, false, 3, 1)},
      {"tensor parallel", "llama", OptimizerKind::AdamW, parallel_of(1, 2, 1, true, 0, 1)},
      {"both", "gpt2", OptimizerKind::Sgd, parallel_of(2, 2, 1, true, 3, 2)},
      {"LAMB", "gpt2", OptimizerKind::Lamb, parallel_of(2, 2, 1, false, 1, 1)}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const OneDevice one(row.family, 2, transformer_groups(row.kind));
    EXPECT_EQ(one.wrong(fuse(
                  partition(propagate(add_uses(simplify(one.graph)), strategy_of(row.parallel))))),
              "");
  }
}

}  // namespace
}  // namespace tessera
