/// A classifier with ever more classes, as for finding persons again (ReID): Z = (X x W) x V. Its
/// plan turns from data parallel to model parallel.
///
/// X has a row for each picture, W makes features of it, V has a column for each class. With few
/// classes each device takes its rows of X and has all of W and V: data parallel. All that is sent
/// are the gradients of both. With many classes V and its gradient are large. Then it is cheaper to
/// hand each device the features of all pictures and let it have some columns of V: model parallel.
///
///   example_reid                       searches for 8 devices, and runs both plans on 4
///
/// Nobody says which: search_mode dynamic_programming finds it, from what the machine's links and
/// memory take (docs/from/mindspore.md).

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace {

using namespace tessera;

struct Sizes {
  std::int64_t pictures = 256, inputs = 2048, features = 2048, classes = 0;
};

/// One step of training, searched for so many devices.
ParallelStep classifier(const Sizes& sizes, std::int64_t devices, const Machine& machine) {
  Builder builder;
  const Init normal{Init::Kind::Normal, 0.02};
  const Value x = builder.batch("x", {DType::F32, {sizes.pictures, sizes.inputs}, {}});
  const Value labels = builder.batch("labels", {DType::I32, {sizes.pictures}, {}});
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  const Value w =
      builder.state("w", {DType::F32, {sizes.inputs, sizes.features}, {}}, Role::Parameter, normal);
  const Value v = builder.state("v", {DType::F32, {sizes.features, sizes.classes}, {}},
                                Role::Parameter, normal);
  const Value z = matmul(matmul(x, w), v);
  const Value loss = cross_entropy_mean(z, labels).value();
  OptimizerConfig sgd;
  sgd.kind = OptimizerKind::Sgd;
  sgd.momentum = sgd.weight_decay = sgd.clip = 0;
  sgd.schedule = {.kind = ScheduleKind::Constant, .lr = 0.5};
  update({w, v}, gradients(loss, {w, v}), loss, samples, sizes.pictures, sgd);
  builder.output(Output::Kind::Metric, "loss", loss);

  AutoParallel options;
  if (devices > 1) {
    options.mode = ParallelMode::AutoParallel;
    options.search_mode = SearchMode::DynamicProgramming;
    options.device_num = devices;
    options.machine = machine;
  }
  return parallelize(builder.finish(), options);
}

/// How V lies: whole on each device, or cut along its classes.
bool cuts_classes(const Strategy& strategy) {
  bool out = false;
  for (const Pin& pin : strategy.pins) {
    if (pin.values == "v") out = !pin.sharding.dims[1].empty();
  }
  return out;
}

/// Links and memory in GB/s, the time until a first byte comes in us, arithmetic in GFLOP/s.
Machine machine_of(double links, double latency, double arithmetic, double memory) {
  Machine out;
  out.core.gigabytes_per_s = links;
  out.core.microseconds = latency;
  DeviceSpeed& device = out.device;
  device.f32.gigaflops_per_s = device.other_gigaflops_per_s = arithmetic;
  device.memory_gigabytes_per_s = memory;
  return out;
}

/// From where on the classes are cut, among powers of two.
std::int64_t turn(Sizes sizes, const Machine& machine) {
  std::printf("with links of %g GB/s\n", machine.core.gigabytes_per_s);
  std::int64_t out = 0;
  for (sizes.classes = 64; sizes.classes <= 1 << 20; sizes.classes *= 4) {
    const ParallelStep step = classifier(sizes, 8, machine);
    const bool cut = cuts_classes(step.strategy);
    if (cut && out == 0) out = sizes.classes;
    std::printf("  %7lld classes: %s, %.6f s a step\n", static_cast<long long>(sizes.classes),
                cut ? "model parallel" : "data parallel ", step.search->step_seconds);
  }
  return out;
}

/// The losses of a few steps.
std::vector<double> run(const Sizes& sizes, std::int64_t devices, const Machine& machine) {
  const ParallelStep step = classifier(sizes, devices, machine);
  std::vector<double> losses;
  run_ranks(static_cast<int>(devices), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
    CompileOptions mine;
    mine.rank = world.rank();
    RankGroup group(compile({{"init", initialise(step.graph), step.strategy},
                             {"train", step.graph, step.strategy}},
                            *device, mine),
                    *device, &world);
    if (world.rank() > 0) return group.follow();
    group.run("init");
    for (int i = 0; i < 5; ++i) {
      group.run("train", [&](BatchInputs& batch) {
        std::int64_t n = 0;
        for (float& number : batch.fill<float>("x"))
          number = static_cast<float>(++n * 7 % 13 - 6) / 6.0F;
        for (std::int32_t& label : batch.fill<std::int32_t>("labels"))
          label = static_cast<std::int32_t>(++n * 5 % sizes.classes);
      });
      losses.push_back(group.engine().scalar("train", "loss"));
    }
    group.stop();
  });
  return losses;
}

}  // namespace

int main() try {
  // Links a twentieth as fast as memory, and links two hundred times slower.
  const std::int64_t fast = turn({}, machine_of(50, 5, 10000, 1000)),
                     slow = turn({}, machine_of(5, 5, 10000, 1000));
  bool good = fast > 64 && slow > 64;

  // Both plans on four devices, and one device.
  const Sizes small{16, 12, 8, 64};
  const Machine free = machine_of(1000, 0, 0.1, 0.1), dear = machine_of(0.01, 10, 100, 100);
  const std::vector<double> one = run(small, 1, free);
  for (const Machine& machine : {free, dear}) {
    const std::vector<double> four = run(small, 4, machine);
    std::printf("%s on 4 devices:", cuts_classes(classifier(small, 4, machine).strategy)
                                        ? "model parallel"
                                        : "data parallel");
    for (std::size_t i = 0; i < four.size(); ++i) {
      std::printf(" %.6f", four[i]);
      good = good && std::abs(four[i] - one[i]) < 1e-5;
    }
    std::printf("\n");
  }
  if (good) return 0;
  std::fprintf(stderr, "not what was expected\n");
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
