/// A network of two linear layers, trained on one device and then on two: the same program prints
/// the same losses.
///
/// It learns the product of two numbers. docs/guides/cpp-model.md explains such a program line by line.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <vector>

#include "tessera/tessera.h"

using namespace tessera;

namespace {

constexpr std::int64_t kRows = 64;  // samples per step
constexpr int kSteps = 200;

/// One training step as a graph of whole tensors. It says nothing of devices.
Graph training_step() {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {kRows, 2}, {}});
  const Value y = builder.batch("y", {DType::F32, {kRows, 1}, {}});
  const Value hidden = relu(linear(x, "first", 32, {.init = normal_init(1)}));
  const Value error = linear(hidden, "second", 1, {.init = normal_init(0.2)}) - y;
  const Value loss = mean(error * error, {0, 1});
  builder.output(Output::Kind::Metric, "loss", loss);

  std::vector<Value> parameters;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) parameters.emplace_back(builder, state.value);
  }
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  OptimizerConfig adamw;
  adamw.schedule = {.kind = ScheduleKind::Constant, .lr = 0.02};
  update(parameters, gradients(loss, parameters), loss, samples, kRows, adamw);
  return builder.finish();
}

/// Trains on the devices of the strategy's mesh, each a thread; returns the loss of each step.
std::vector<double> train(const Strategy& strategy) {
  std::vector<double> losses;
  const Graph step = training_step();
  run_ranks(static_cast<int>(strategy.mesh.ranks()), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
    CompileOptions options;
    options.rank = world.rank();
    RankGroup group(compile({{"init", initialise(step), strategy}, {"train", step, strategy}},
                            *device, options),
                    *device, &world);
    if (world.rank() > 0) return group.follow();  // rank 0 says what runs, and fills whole batches

    std::mt19937 random(1);
    std::uniform_real_distribution<float> between(-1, 1);
    group.run("init");
    for (int i = 0; i < kSteps; ++i) {
      group.run("train", [&](BatchInputs& batch) {
        const auto x = batch.fill<float>("x"), y = batch.fill<float>("y");
        for (float& number : x) number = between(random);
        for (std::size_t row = 0; row < y.size(); ++row) y[row] = x[2 * row] * x[2 * row + 1];
      });
      losses.push_back(group.engine().scalar("train", "loss"));
    }
    group.stop();
  });
  return losses;
}

}  // namespace

int main() try {
  Strategy two;
  two.mesh = parse_mesh("dp=2");
  two.batch = {{"dp"}};  // each device has half of the rows; what is sent follows from that
  const std::vector<double> on_one = train(one_device(1)), on_two = train(two);
  double furthest = 0;
  for (std::size_t i = 0; i < on_one.size(); ++i) {
    if (i % 20 == 0)
      std::printf("step %3zu: loss %.6f, on two devices %.6f\n", i, on_one[i], on_two[i]);
    if (i < 10) furthest = std::max(furthest, std::abs(on_one[i] - on_two[i]) / on_one[i]);
  }
  std::printf("the first ten losses differ by %.1e at most\n", furthest);
  return on_one.back() < on_one.front() / 10 && furthest < 1e-5 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
