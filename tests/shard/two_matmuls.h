#pragma once
/// The network of MindSpore's quick start: two products with a relu between them.

#include "tessera/ir/builder.h"
#include "tessera/nn/optimizer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/grad.h"

namespace tessera::test {

/// A step under construction: strategies are said of its values.
struct TwoMatmuls {
  Builder builder;
  Value x, w, w2, first, middle, out;

  explicit TwoMatmuls(std::int64_t batch = 16) {
    x = builder.batch("x", {DType::F32, {batch, 32}, {}});
    const Value label = builder.batch("label", {DType::F32, {batch, 16}, {}});
    const Init normal{Init::Kind::Normal, 0.01};
    w = builder.state("w", {DType::F32, {32, 16}, {}}, Role::Parameter, normal);
    w2 = builder.state("w2", {DType::F32, {16, 16}, {}}, Role::Parameter, normal);
    first = matmul(x, w);
    middle = relu(first);
    out = matmul(middle, w2);
    const Value error = out - label;
    loss_ = sum_all(error * error) / static_cast<double>(batch * 16);
  }

  /// The whole step, with momentum: after the first one that is the gradient.
  Graph step() {
    const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
    OptimizerConfig momentum;
    momentum.kind = OptimizerKind::Sgd;
    momentum.momentum = 0.1;
    momentum.weight_decay = momentum.clip = 0;
    momentum.schedule = {.kind = ScheduleKind::Constant, .lr = 0.2};
    const std::vector<Value> grads = gradients(loss_, {w, w2});
    update({w, w2}, grads, loss_, samples, out.shape()[0], momentum);
    builder.output(Output::Kind::Metric, "loss", loss_);
    builder.output(Output::Kind::Metric, "gradient w", grads[0]);
    builder.output(Output::Kind::Metric, "gradient w2", grads[1]);
    return builder.finish();
  }

 private:
  Value loss_;
};

}  // namespace tessera::test
