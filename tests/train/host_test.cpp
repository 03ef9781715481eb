/// Values on the host: a step some of whose states and activations lie there computes the bits of
/// the step without, on every mesh, and writes the planned bytes of both pools and no others.

#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/comm/local.h"
#include "tessera/ops/collective.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/rank_group.h"
#include "train/host_plan.h"
#include "train/staged_run.h"
#include "train/step_plan.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

struct Spread {
  const char* why;
  OnHost which;
  ParallelConfig parallel = {.micro_batches = 3};
  PipelineStrategy pipeline = {};
  bool overlap = true;
  std::int64_t guard_bytes = 64;
  bool in_folder = false;
};

const Spread kSpreads[] = {
    {"all states, updated where they lie", {100, 0, 100}},
    {"all states, updated on the device and written back", {100, 0, 0}},
    {"all activations, in every micro-batch", {0, 100}},
    {"all of both", {100, 100, 50}},
    {"half of both", {50, 50, 50, 2}},
    {"without guards: planned bytes are used bytes",
     {60, 60, 50, 3},
     {.micro_batches = 3},
     {},
     true,
     0},
    {"one micro-batch", {60, 60, 50, 4}, {.micro_batches = 1}, {}, true, 0},
    {"copies where they stand", {60, 60, 50, 5}, {.micro_batches = 2}, {}, false},
    {"in files", {100, 60, 50, 6}, {.micro_batches = 2}, {}, true, 0, true},
    {"stored in parts: copied, then gathered", {100, 30, 50, 7}, zero(2, 3, 2)},
    {"gradients in parts, written back", {100, 30, 0, 8}, zero(2, 2, 2), {}, true, 0},
    {"stages, whose activations are held in rings", {60, 100, 50, 9}, {.micro_batches = 4}, {2}},
    {"chunks", {60, 60, 50, 10}, {.micro_batches = 4}, {2, 2, "zb-v"}},
};

ModelConfig small_model() {
  ModelConfig out = tiny("gpt2");
  out.layers = 4;
  return out;
}

/// Under which name profiles show what copies there are; "" without any.
std::string copies_in(const Plan& plan) {
  std::string out;
  for (const ProgramPlan& program : plan.programs) {
    for (const RegionPlan& region : program.regions) {
      for (const Call& call : region.calls) {
        if (call.op == &kCopy) out = text("copied by ", kernel_name(call));
      }
    }
  }
  return out;
}

/// Metrics of each step, then the bytes of each state; by rank.
using Bits = std::map<int, std::vector<std::string>>;

Bits run_steps(const Spread& c, const OnHost& which, const std::string& folder) {
  Bits out;
  std::mutex mutex;
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  const Graph step = train_step(small_model(), optimizer, 24, small_model().context);
  Strategy strategy = strategy_of(c.parallel);
  ParallelConfig once = c.parallel;
  once.micro_batches = 1;
  Strategy init = strategy_of(once, BatchSplit::Whole);
  strategy.pipeline = init.pipeline = c.pipeline;
  const std::vector<ProgramSource> sources = {{kInitProgram, initialise(step), init},
                                              {kTrainProgram, step, strategy}};
  const auto run_rank = [&](Communicator* world) {
    CpuChoices choices = machine_choices();
    choices.pack_weights = false;  // weights that are copied are not packed: other products
    const auto device =
        make_cpu_device({.threads = 1, .choices = choices, .offload_folder = folder});
    CompileOptions options;
    options.rank = world == nullptr ? 0 : world->rank();
    options.optimize.fuse = false;  // what is fused depends on where it lies
    options.overlap = c.overlap;
    options.guard_bytes = c.guard_bytes;
    Executor executor(host_plan(sources, which, *device, options), *device, world);
    const Plan& plan = executor.plan();
    std::vector<std::string> mine;
    UsedBytes most;
    for (int n = 0; n < 4; ++n) {
      UsedBytes used;
      const std::string name = n == 0 ? kInitProgram : kTrainProgram;
      executor.run(name,
                   [&](BatchInputs& batch) {
                     if (n > 0 && !plan.program(name).batch.empty())
                       fill_inputs(batch, task_of(tiny("gpt2")).inputs, n);
                   },
                   {.used_bytes = &used});
      for (const Memory memory : kMemories) most[memory] = std::max(most[memory], used[memory]);
      for (const NamedTensor& metric : plan.program(name).metrics) {
        const HostTensor value = executor.metric(name, metric.name);
        mine.emplace_back(reinterpret_cast<const char*>(value.bytes().data()),
                          value.bytes().size());
      }
    }
    for (const StatePlan& state : plan.states) {
      if (!plan.has(state)) continue;
      const StateBytes its = executor.read_state(state.state.path);
      mine.emplace_back(reinterpret_cast<const char*>(its.bytes.data()), its.bytes.size());
    }
    const std::scoped_lock lock(mutex);
    EXPECT_TRUE(executor.guard_intact());
    EXPECT_EQ(copies_in(plan), which.states + which.activations > 0 ? "copied by copy" : "");
    EXPECT_EQ(plan.host_bytes() > 0, which.states + which.activations > 0);
    for (const Memory memory : kMemories) {
      EXPECT_LE(plan.lower_bound_bytes(memory), plan.bytes(memory));
      const std::int64_t least = c.guard_bytes == 0 ? plan.bytes(memory) : 0;
      EXPECT_GE(most[memory], least) << "planned, and not used";
    }
    out[options.rank] = std::move(mine);
  };
  const auto ranks = static_cast<int>(strategy.pipeline.stages * strategy.mesh.ranks());
  if (ranks == 1) {
    run_rank(nullptr);
  } else {
    run_ranks(ranks, [&](Communicator& world) { run_rank(&world); });
  }
  return out;
}

TEST(Host, TheSameBits) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / text("tessera_host_", getpid());
  std::filesystem::create_directories(folder);
  for (const Spread& c : kSpreads) {
    SCOPED_TRACE(c.why);
    const Bits without = run_steps(c, {}, "");
    EXPECT_TRUE(run_steps(c, c.which, c.in_folder ? folder.string() : "") == without);
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "a file has stayed behind";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tessera
