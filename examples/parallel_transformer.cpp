/// MindSpore's tutorial of distributed Transformers, on Tessera: the network of its model.py, and
/// its TransformerOpParallelConfig, on 1 device and on 8, with the same losses.
///
/// The network is written as for one device. The parallel configuration is given when it is
/// compiled: no layer takes one.

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

constexpr std::int64_t kBatch = 16, kSource = 10, kTarget = 8, kVocabulary = 21, kWidth = 32;
constexpr int kSteps = 40;

/// Word and position, as EmbeddingLayer of the tutorial.
Value embedding_layer(Value ids, std::string_view name, std::int64_t positions) {
  const Scope scope(ids.builder(), name);
  const Value words = embedding(ids, "token", kVocabulary, kWidth).rows;
  return learned_positions(words, "position", positions);
}

/// Logits [b, kTarget, kVocabulary] for source [b, kSource] and target [b, kTarget].
Value net(Value source, Value target, Value target_mask) {
  TransformerConfig config;
  config.encoder_layers = config.decoder_layers = 2;
  config.layer.heads = 8;
  config.layer.ffn_width = kWidth;
  config.lambda_func = [](Scope& layer, std::int64_t layer_id, std::int64_t offset,
                          const TransformerConfig& of, std::int64_t) {
    const std::int64_t layers_per_stage = of.layers() / 2;
    layer.stage(static_cast<int>((layer_id + offset) / layers_per_stage));
  };
  const Value x = transformer(embedding_layer(source, "embed", kSource),
                              embedding_layer(target, "embed_target", kTarget), config, {},
                              {.mask = attention_mask(target_mask)}, {});
  return linear(x, "head", kVocabulary, {.bias = false});
}

/// One training step.
Graph training_step() {
  Builder builder;
  const auto ids = [&](const char* name, std::int64_t length) {
    return builder.batch(name, {DType::I32, {kBatch, length}, {}});
  };
  const Value source = ids("source", kSource), target = ids("target", kTarget);
  const Value labels = ids("labels", kTarget), mask = ids("mask", kTarget);
  const Value loss = cross_entropy_mean(net(source, target, mask), labels, mask).value();
  builder.output(Output::Kind::Metric, "loss", loss);

  std::vector<Value> parameters;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) parameters.emplace_back(builder, state.value);
  }
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerKind::AdamWeightDecay;
  optimizer.eps = 1e-6;
  optimizer.groups = decay_groups(0.1);  // none for norms and biases
  optimizer.schedule = {.kind = ScheduleKind::Constant, .lr = 3e-3};
  update(parameters, gradients(loss, parameters), loss, samples, kBatch, optimizer);
  return builder.finish();
}

/// Targets that repeat what stands in the source, of unequal lengths.
void fill(std::mt19937& random, BatchInputs& batch) {
  const auto source = batch.fill<std::int32_t>("source"),
             target = batch.fill<std::int32_t>("target"),
             labels = batch.fill<std::int32_t>("labels"), mask = batch.fill<std::int32_t>("mask");
  for (std::int32_t& id : source) id = static_cast<std::int32_t>(random() % 4);
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::size_t row = i / kTarget, at = i % kTarget;
    labels[i] = source[row * kSource + at];
    target[i] = at == 0 ? kVocabulary - 1 : labels[i - 1];
    mask[i] = at < 3 + row % (kTarget - 2) ? 1 : 0;
  }
}

// [strategy]
/// Where the parts of the model go, on `devices` devices.
Strategy strategy(const TransformerOpParallelConfig& config, std::int64_t devices) {
  ModelConfig model;
  model.family = "transformer";  // names of layers, and what model_parallel cuts
  model.layers = model.decoder_layers = 2;
  return strategy_of(config.on(devices), BatchSplit::Cut, model);
}
// [end]

/// Trains on threads, one for each device; returns the loss of each step.
std::vector<double> train(const Strategy& how) {
  std::vector<double> losses;
  const Graph step = training_step();
  const std::int64_t ranks = how.pipeline.stages * how.mesh.ranks();
  Strategy init = how;  // first values are no matter of micro-batches
  std::vector<Axis> axes = how.mesh.axes();
  std::erase_if(axes, [](const Axis& axis) { return axis.level == Level::Time; });
  init.mesh = Mesh(std::move(axes));
  run_ranks(static_cast<int>(ranks), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
    CompileOptions options;
    options.rank = world.rank();
    RankGroup group(
        compile({{"init", initialise(step), init}, {"train", step, how}}, *device, options),
        *device, &world);
    if (world.rank() > 0) return group.follow();
    std::mt19937 random(1);
    group.run("init");
    for (int i = 0; i < kSteps; ++i) {
      group.run("train", [&](BatchInputs& batch) { fill(random, batch); });
      losses.push_back(group.engine().scalar("train", "loss"));
    }
    group.stop();
  });
  return losses;
}

}  // namespace

int main() try {
  // [configs]
  const TransformerOpParallelConfig configs[] = {
      {.data_parallel = 1, .model_parallel = 8},
      {.data_parallel = 2, .model_parallel = 4, .optimizer_shard = true, .vocab_emb_dp = false},
      {.data_parallel = 2, .model_parallel = 2, .pipeline_stage = 2, .micro_batch_num = 4},
  };
  // [end]
  const std::vector<double> one = train(strategy({.pipeline_stage = 1}, 1));
  std::printf("dp 1 mp 1 pp 1: loss %.4f -> %.4f\n", one.front(), one.back());
  bool good = one.back() < 0.8 * one.front();
  for (const TransformerOpParallelConfig& config : configs) {
    const std::vector<double> other = train(strategy(config, 8));
    double furthest = 0;
    for (std::size_t i = 0; i < 10; ++i)
      furthest = std::max(furthest, std::abs(one[i] - other[i]) / one[i]);
    std::printf("dp %d mp %d pp %d: loss %.4f -> %.4f, first ten losses differ by %.1e\n",
                static_cast<int>(config.data_parallel), static_cast<int>(config.model_parallel),
                static_cast<int>(config.pipeline_stage), other.front(), other.back(), furthest);
    good = good && furthest < 1e-5;
  }
  return good ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
