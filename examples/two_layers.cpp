/// A model of one's own, from its first line to its trained weights.
///
/// It learns to tell points inside a circle from points outside it: two layers, about a hundred
/// weights, less than a second of training. The steps are those of every model, whatever its size:
///
///   1. write the model, its loss and its update as one graph           (build_step)
///   2. compile the graph to a plan for a device                        (main)
///   3. run the plan: write the weights once, then one batch per step   (main)

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <span>

#include "tessera/nn/layers.h"
#include "tessera/nn/optimizer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/softmax.h"
#include "tessera/passes/grad.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/step.h"

namespace {

using namespace tessera;

constexpr std::int64_t kPoints = 64;  // per step
constexpr std::int64_t kMicrobatches =
    2;                                // the step is run in two halves: less memory, same numbers
constexpr std::int64_t kHidden = 24;  // width of the hidden layer
constexpr int kSteps = 400;

/// The model: points [batch, 2] -> logits [batch, 2], of "outside" and "inside".
///
/// `linear` declares its weight and bias as states of the graph, named after the layer:
/// "first.weight", "first.bias", and so on.
Value model(Value points) {
  const Value hidden = gelu(linear(points, "first", kHidden, {.init_std = 0.7}), GeluForm::Tanh);
  return linear(hidden, "second", 2, {.init_std = 0.2});
}

/// Everything that one training step computes, as one graph over whole tensors.
Graph build_step() {
  Builder builder;

  // What comes from outside: batch inputs change with every step, states live on.
  const Value points = builder.batch("points", {DType::F32, {kPoints, 2}, {}});
  const Value labels = builder.batch("labels", {DType::I32, {kPoints}, {}});
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});

  // The loss: a mean over the batch, written as a sum, so that it can be cut into micro-batches.
  const Value losses = cross_entropy(model(points), labels).loss;  // [batch]
  const Value loss = sum_all(losses) / static_cast<double>(kPoints);

  // The gradient of every parameter that the model declared.
  std::vector<Value> parameters;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) parameters.emplace_back(builder, state.value);
  }
  const std::vector<Value> grads = gradients(loss, parameters);

  // The update: AdamW, its moments and counters become states too.
  OptimizerConfig optimizer;
  optimizer.schedule = {.kind = ScheduleKind::Cosine,
                        .lr = 3e-2,
                        .min_lr = 1e-3,
                        .warmup_steps = 10,
                        .decay_steps = kSteps};
  const UpdateResult result = update(parameters, grads, loss, samples, kPoints, optimizer);

  // What the caller may read after a step.
  builder.output(Output::Kind::Metric, "loss", loss);
  builder.output(Output::Kind::Metric, "lr", result.lr);
  return builder.finish();
}

/// Fills one batch: points in the square from -1 to 1, label 1 inside a circle.
void fill(std::mt19937& numbers, BatchInputs& batch) {
  const std::span<float> points = batch.fill<float>("points");                // [kPoints, 2]
  const std::span<std::int32_t> labels = batch.fill<std::int32_t>("labels");  // [kPoints]
  std::uniform_real_distribution<float> between(-1, 1);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float x = points[2 * i] = between(numbers), y = points[2 * i + 1] = between(numbers);
    labels[i] = x * x + y * y < 0.6F ? 1 : 0;
  }
}

/// Trains, and returns the mean loss of the last steps.
double train() {
  const Graph step = build_step();

  // A plan holds several programs over the same states; here one writes the first weights and one
  // trains. Every byte has its place now: nothing is allocated while it runs.
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 2});
  Plan plan = compile(
      {{"init", initialise(step), one_device(1)}, {"train", step, one_device(kMicrobatches)}},
      *device);
  std::printf("%lld bytes in all\n", static_cast<long long>(plan.peak_bytes()));

  Executor executor(std::move(plan), *device);
  executor.run("init");
  std::mt19937 numbers(1);
  double recent = 0;  // mean loss since the last line
  for (int i = 1; i <= kSteps; ++i) {
    executor.run("train", [&](BatchInputs& batch) { fill(numbers, batch); });
    recent += executor.scalar("train", "loss") / 50;
    if (i % 50 != 0) continue;
    std::printf("step %3d   loss %.4f   lr %.5f\n", i, recent, executor.scalar("train", "lr"));
    if (i < kSteps) recent = 0;
  }
  return recent;
}

}  // namespace

int main() try {
  const double loss = train();
  if (loss < 0.15) return 0;  // it starts at log 2 = 0.69
  std::fprintf(stderr, "the loss has not fallen\n");
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
