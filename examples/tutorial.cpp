/// The program of docs/guides/cpp-model.md: a model, its training step, one device, then two.
///
/// It learns to tell points inside a circle from points outside it, in less than a second.

// [includes]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <span>
#include <vector>

#include "tessera/tessera.h"

using namespace tessera;
// [end]

namespace {

// [model]
/// Points [batch, 2] -> logits [batch, 2]: scores of "outside" and "inside".
Value model(Value points) {
  const Value hidden =
      gelu(linear(points, "first", 24, {.init = normal_init(0.7)}), GeluForm::Tanh);
  return linear(hidden, "second", 2, {.init = normal_init(0.2)});
}
// [end]

// [loss]
constexpr std::int64_t kPoints = 64;  // samples per step
constexpr int kSteps = 400;

Graph training_step() {
  Builder builder;
  const Value points = builder.batch("points", {DType::F32, {kPoints, 2}, {}});
  const Value labels = builder.batch("labels", {DType::I32, {kPoints}, {}});

  const Value losses = cross_entropy(model(points), labels).loss;  // [kPoints]
  const Value loss = sum_all(losses) / static_cast<double>(kPoints);
  // [end]

  // [gradient]
  std::vector<Value> parameters;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) parameters.emplace_back(builder, state.value);
  }
  const std::vector<Value> grads = gradients(loss, parameters);
  // [end]

  // [update]
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  OptimizerConfig adamw;
  adamw.schedule = {.kind = ScheduleKind::Cosine,
                    .lr = 3e-2,
                    .min_lr = 1e-3,
                    .warmup_steps = 10,
                    .decay_steps = kSteps};
  update(parameters, grads, loss, samples, kPoints, adamw);

  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}
// [end]

// [predict]
Graph prediction() {
  Builder builder;
  const Value points = builder.batch("points", {DType::F32, {kPoints, 2}, {}});
  builder.output(Output::Kind::Metric, "logits", model(points));
  return builder.finish();
}
// [end]

// [compile]
Plan make_plan(const Strategy& strategy, Device& device, int rank) {
  const Graph step = training_step();
  Strategy whole = strategy;
  whole.batch = {};  // every rank computes all points
  CompileOptions options;
  options.rank = rank;
  return compile({{"init", initialise(step), whole},
                  {"train", step, strategy},
                  {"predict", prediction(), whole}},
                 device, options);
}
// [end]

/// Points of the square from -1 to 1; label 1 inside of a circle.
void fill(std::mt19937& random, std::span<float> points, std::span<std::int32_t> labels) {
  std::uniform_real_distribution<float> between(-1, 1);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float x = points[2 * i] = between(random), y = points[2 * i + 1] = between(random);
    labels[i] = x * x + y * y < 0.6F ? 1 : 0;
  }
}

// [run]
struct Outcome {
  std::vector<double> losses;  // of each step
  double accuracy = 0;         // on points that it was not trained on
};

/// What one rank does. `world` connects it with the others; null on one device.
Outcome train(const Strategy& strategy, Communicator* world) {
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
  const int rank = world == nullptr ? 0 : world->rank();
  RankGroup group(make_plan(strategy, *device, rank), *device, world);
  if (rank > 0) {
    group.follow();
    return {};
  }

  Outcome out;
  std::mt19937 random(1);
  std::vector<std::int32_t> truth(kPoints);
  group.run("init");
  for (int i = 0; i < kSteps; ++i) {
    group.run("train", [&](BatchInputs& batch) {
      fill(random, batch.fill<float>("points"), batch.fill<std::int32_t>("labels"));
    });
    out.losses.push_back(group.engine().scalar("train", "loss"));
  }

  group.run("predict",
            [&](BatchInputs& batch) { fill(random, batch.fill<float>("points"), truth); });
  const HostTensor logits = group.engine().metric("predict", "logits");
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const bool inside = logits.at(2 * i + 1) > logits.at(2 * i);
    out.accuracy += inside == (truth[static_cast<std::size_t>(i)] == 1) ? 1.0 / kPoints : 0;
  }
  group.stop();
  return out;
}
// [end]

// [two devices]
/// Each device has half of the points and all parameters.
Strategy data_parallel() {
  Strategy out;
  out.mesh = parse_mesh("dp=2");
  out.batch = {{"dp"}};
  return out;
}

/// Each device has all points and half of the hidden layer.
Strategy tensor_parallel() {
  Strategy out;
  out.mesh = parse_mesh("tp=2");
  out.batch = {};
  out.pins = {{"first.weight", parse_sharding("[tp,-]")},
              {"first.bias", parse_sharding("[tp]")},
              {"second.weight", parse_sharding("[-,tp]")}};
  return out;
}

Outcome train_on_two(const Strategy& strategy) {
  Outcome out;
  run_ranks(2, [&](Communicator& world) {
    Outcome mine = train(strategy, &world);
    if (world.rank() == 0) out = std::move(mine);
  });
  return out;
}
// [end]

/// The largest relative difference of the first ten losses.
double difference(const Outcome& a, const Outcome& b) {
  double out = 0;
  for (std::size_t i = 0; i < 10; ++i)
    out = std::max(out, std::abs(a.losses[i] - b.losses[i]) / a.losses[i]);
  return out;
}

}  // namespace

int main() try {
  const Outcome one = train(one_device(1), nullptr);
  std::printf("one device: loss %.4f -> %.4f, accuracy %.0f %%\n", one.losses.front(),
              one.losses.back(), 100 * one.accuracy);
  bool good = one.losses.back() < 0.2 && one.accuracy > 0.9;
  for (const Strategy& strategy : {one_device(4), data_parallel(), tensor_parallel()}) {
    const bool alone = strategy.mesh.ranks() == 1;
    const Outcome other = alone ? train(strategy, nullptr) : train_on_two(strategy);
    std::printf("%-15s loss %.4f -> %.4f, first ten losses differ by %.1e\n",
                to_text(strategy.mesh).c_str(), other.losses.front(), other.losses.back(),
                difference(one, other));
    good = good && difference(one, other) < 1e-5;
  }
  return good ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
