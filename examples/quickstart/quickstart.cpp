/// MindSpore's quick start of distributed training, on Tessera: one hidden layer on 8 ranks, a
/// strategy for one product, and the compiler finds the rest.
///
///   example_quickstart --devices 8             ranks are threads of this process
///   bash run_with_mpi.sh                       ranks are processes: mpirun -n 8
///
///   --checkpoints FOLDER    each rank saves the model in FOLDER/<rank>
///   --save-graphs FOLDER    FOLDER/rank_<rank>: each op's strategy, and what each rank runs
///   --search-mode MODE      how the ops without a strategy get one: sharding_propagation (the
///                           default), recursive_programming or dynamic_programming; all: train
///                           with each of the three, and compare their losses
///
/// Each rank feeds its own two rows (dataset_strategy "data_parallel"), so a step has 16.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace {

using namespace tessera;

constexpr int kEpochs = 5, kStepsPerEpoch = 4;
constexpr std::int64_t kRows = 2;  // of one rank
constexpr std::int64_t kInDim = 32, kHiddenDim = 16, kOutDim = 16;

struct Flags {
  int devices = 8;
  std::string checkpoints, save_graphs;
  std::vector<SearchMode> modes = {SearchMode::ShardingPropagation};
};

constexpr SearchMode kModes[] = {SearchMode::ShardingPropagation, SearchMode::RecursiveProgramming,
                                 SearchMode::DynamicProgramming};

/// One training step of `rows` rows over all ranks, written as for one device, and its strategy.
ParallelStep training_step(int devices, SearchMode mode) {
  Builder builder;
  const std::int64_t rows = kRows * devices;
  const Value x = builder.batch("input", {DType::F32, {rows, kInDim}, {}});
  const Value label = builder.batch("label", {DType::F32, {rows, kOutDim}, {}});
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  const Init normal{Init::Kind::Normal, 0.01};
  const Value w =
      builder.state("w", {DType::F32, {kInDim, kHiddenDim}, {}}, Role::Parameter, normal);
  const Value w2 =
      builder.state("w2", {DType::F32, {kHiddenDim, kOutDim}, {}}, Role::Parameter, normal);

  // On 8 ranks the rows of x are cut in two and its columns in four, and so are w's rows. What the
  // relu and the second product do follows from that.
  const Value hidden = shard(matmul(x, w), {{2, devices / 2}, {devices / 2, 1}});
  const Value out = matmul(relu(hidden), w2);
  const Value error = out - label;
  const Value loss = mean(error * error, {0, 1});

  OptimizerConfig momentum;
  momentum.kind = OptimizerKind::Sgd;
  momentum.momentum = 0.1;
  momentum.weight_decay = momentum.clip = 0;
  momentum.schedule = {.kind = ScheduleKind::Constant, .lr = 0.2};
  update({w, w2}, gradients(loss, {w, w2}), loss, samples, rows, momentum);
  builder.output(Output::Kind::Metric, "loss", loss);

  AutoParallel parallel;
  parallel.mode = ParallelMode::AutoParallel;
  parallel.search_mode = mode;
  parallel.device_num = devices;
  parallel.shards = shards_of(builder);
  return parallelize(builder.finish(), parallel);
}

/// A program whose metrics are the parameters, whole on every rank, to be saved.
Graph read_parameters(const Graph& step) {
  Builder builder;
  for (const State& state : step.states()) {
    const Value value = builder.state(state.path, step.type(state.value), state.role, state.init);
    if (state.role == Role::Parameter) builder.output(Output::Kind::Metric, state.path, value);
  }
  return builder.finish();
}

/// The numbers of numpy's random.seed(1) and random.rand, as float32.
std::vector<float> draw(std::mt19937& numbers, std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const double high = numbers() >> 5, low = numbers() >> 6;
    out.push_back(static_cast<float>((high * 67108864 + low) / 9007199254740992));
  }
  return out;
}

void save(Executor& executor, const std::string& folder) {
  executor.run("read");
  std::vector<HostTensor> values;
  std::vector<CheckpointTensor> tensors;
  for (const char* path : {"w", "w2"}) values.push_back(executor.metric("read", path));
  tensors.push_back({"w", {DType::F32, values[0].shape(), {}}, Role::Parameter, values[0].bytes()});
  tensors.push_back(
      {"w2", {DType::F32, values[1].shape(), {}}, Role::Parameter, values[1].bytes()});
  save_checkpoint(folder, {kEpochs * kStepsPerEpoch, 0, {}}, tensors);
}

/// The code of one rank. Returns the first and the last loss.
std::pair<double, double> train(Communicator& world, const Flags& flags, SearchMode mode) {
  const ParallelStep step = training_step(world.size(), mode);
  CompileOptions options;
  options.rank = world.rank();
  if (!flags.save_graphs.empty())
    options.observe = save_graphs(flags.save_graphs, "train", world.rank());
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
  Plan plan = compile({{"init", initialise(step.graph), step.strategy},
                       {"train", step.graph, step.strategy},
                       {"read", read_parameters(step.graph), step.strategy}},
                      *device, options);
  if (world.rank() == 0) {
    const SearchReport cost =
        step.search
            ? *step.search
            : search_placements(simplify(merge_pads(step.graph)), step.strategy, mode).report;
    std::printf("%s: %.1f us a step, as the searches count\n", std::string(to_text(mode)).c_str(),
                1e6 * cost.step_seconds);
    for (const auto& [axes, counts] : planned_counts(plan.programs[1]))
      std::printf("along %s each rank sends %lld bytes a step\n", axes.c_str(),
                  static_cast<long long>(bytes_of(counts)));
  }

  Executor executor(std::move(plan), *device, &world);
  executor.run("init");
  std::mt19937 numbers(1);
  const std::vector<float> input = draw(numbers, kRows * kInDim),
                           label = draw(numbers, kRows * kOutDim);
  double first = 0, last = 0;
  for (int i = 0; i < kEpochs * kStepsPerEpoch; ++i) {
    executor.run("train", [&](BatchInputs& batch) {  // the same rows every time
      batch.set("input", input);
      batch.set("label", label);
    });
    last = executor.scalar("train", "loss");
    if (i == 0) first = last;
    std::printf("epoch: %d step: %d, loss is %.15g\n", i / kStepsPerEpoch + 1,
                i % kStepsPerEpoch + 1, last);
    std::fflush(stdout);
  }
  if (!flags.checkpoints.empty())
    save(executor, flags.checkpoints + "/" + std::to_string(world.rank()));
  return {first, last};
}

Flags read_flags(int argc, char** argv) {
  Flags out;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    require(i + 1 < argc, "flag ", flag, " needs a value");
    const std::string value = argv[i + 1];
    if (flag == "--devices") {
      out.devices = std::atoi(value.c_str());
      require(out.devices >= 2 && out.devices % 2 == 0, "--devices ", value,
              " is not an even number; the rows of the first product are cut in two");
    } else if (flag == "--checkpoints") {
      out.checkpoints = value;
    } else if (flag == "--save-graphs") {
      out.save_graphs = value;
    } else if (flag == "--search-mode") {
      out.modes.clear();
      for (const SearchMode mode : kModes) {
        if (value == "all" || value == to_text(mode)) out.modes.push_back(mode);
      }
      require(!out.modes.empty(), "--search-mode ", value, " is not known; it can be ",
              to_text(kModes[0]), ", ", to_text(kModes[1]), ", ", to_text(kModes[2]), " or all");
    } else {
      fail(Fault::Usage, "unknown flag ", flag,
           "; there are --devices, --checkpoints, --save-graphs and --search-mode");
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  const Flags flags = read_flags(argc, argv);
  bool falling = true, equal = true;
  std::mutex shared;
  const auto body = [&](Communicator& world) {
    double before = 0;
    for (const SearchMode mode : flags.modes) {
      const auto [first, last] = train(world, flags, mode);
      const std::lock_guard lock(shared);
      falling = falling && last < first;
      equal = equal && (mode == flags.modes[0] || std::abs(last - before) < 1e-6);
      before = last;
    }
  };
  const Launched launched =
      launch_of([](const char* name) { return std::getenv(name); }, {.mpi = has_mpi()});
  if (launched.how != Launched::Alone) {
    run_launched(launched, body);
  } else {
    run_ranks(flags.devices, body);
  }
  if (falling && equal) return 0;
  std::fprintf(stderr,
               falling ? "the losses of two search modes differ\n" : "the loss has not fallen\n");
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
