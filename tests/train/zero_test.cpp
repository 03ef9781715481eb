/// What sharding states over data parallel ranks saves, and what it moves: the plan's bytes are the
/// formulas', and those that a run counts are the plan's.

#include <gtest/gtest.h>

#include <iostream>
#include <mutex>
#include <set>

#include "tessera/comm/local.h"
#include "tessera/plan/traffic.h"
#include "tessera/train/rank_group.h"
#include "train/sent_bytes.h"
#include "train/step_plan.h"

namespace tessera {
namespace {

ModelConfig zero_model(const std::string& family, std::int64_t vocabulary) {
  ModelConfig c;
  c.family = family;
  c.layers = 2;
  c.heads = 8;
  c.width = 64;
  c.context = 16;
  c.vocabulary = vocabulary;
  if (reads_field(c, "num-experts")) c.experts = {.experts = 3, .chosen = 2};
  return c;
}

constexpr std::int64_t kZeroBatch = 24;

Plan zero_plan(const ModelConfig& model, const ParallelConfig& parallel, Device& device,
               int rank = 0) {
  CompileOptions options;
  options.rank = rank;
  return step_plan(model, kZeroBatch, parallel, device, options);
}

std::int64_t bytes_of_role(const Plan& plan, Role role) {
  std::int64_t out = 0;
  for (const StatePlan& state : plan.states)
    out += state.state.role == role ? state.type.bytes() : 0;
  return out;
}

/// What micro-batches add to, but for numbers such as the loss.
std::int64_t accumulator_bytes(const ProgramPlan& program) {
  std::int64_t out = 0;
  for (const RegionPlan& region : program.regions) {
    for (const Call& call : region.calls) {
      const TensorType& type = call.types->outs[0];
      if (!call.transfer && call.when == When::First && type.ndim() > 0) out += type.bytes();
    }
  }
  return out;
}

/// By how many numbers a shard is larger than its part of the tensor: the first dim that the ranks
/// divide is cut, else the first, into shards that are rounded up.
double padding(const Shape& shape, std::int64_t ranks) {
  int dim = 0;
  for (int d = shape.ndim(); d-- > 0;) {
    if (shape[d] % ranks == 0) dim = d;
  }
  const std::int64_t rows = (shape[dim] + ranks - 1) / ranks;
  return static_cast<double>(rows * (shape.numel() / shape[dim])) -
         static_cast<double>(shape.numel()) / static_cast<double>(ranks);
}

/// Bytes per parameter of f32 parameters, sums of gradients and two moments.
double formula(int level, double d) {
  constexpr double kWhole[] = {16, 8, 4, 0}, kShared[] = {0, 8, 12, 16};
  return kWhole[level] + kShared[level] / d;
}

TEST(Zero, StatesAndGradientsTakeTheBytesOfTheFormulasAndThePaddingThatShapesTell) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (const std::int64_t ranks : {2, 3, 4, 8}) {
    for (int level = 0; level <= 3; ++level) {
      for (const std::string family : {"gpt2", "llama"}) {
        const Plan plan = zero_plan(zero_model(family, 65), zero(ranks, level, 3), *device);
        double parameters = 0, padded = 0;  // in numbers
        for (const StatePlan& state : plan.states) {
          if (state.state.role != Role::Parameter) continue;
          parameters += static_cast<double>(state.logical.numel());
          const int sharded = level == 0 ? 0 : level + 1;  // tensors of this shape
          padded += sharded * padding(state.logical, ranks);
        }
        const std::int64_t planned = bytes_of_role(plan, Role::Parameter) +
                                     bytes_of_role(plan, Role::Moment) +
                                     accumulator_bytes(plan.program(kTrainProgram));
        const double ideal = parameters * formula(level, static_cast<double>(ranks));
        // Thirds are rounded: in the formula, and once per tensor in the padding.
        EXPECT_NEAR(static_cast<double>(planned), ideal + 4 * padded, 1e-3)
            << family << " ZeRO-" << level << " on " << ranks;
        std::cout << family << " ZeRO-" << level << " on " << ranks << " ranks: " << planned
                  << " bytes, " << static_cast<double>(planned) / parameters
                  << " per parameter, of them padding " << 4 * padded << " bytes\n";
      }
    }
  }
}

std::int64_t sent_along_dp(const Plan& plan) {
  return bytes_of(planned_counts(plan.program(kTrainProgram))["dp"]);
}

/// With one micro-batch. Matrices move by the formulas to the byte; beside them, ranks that share
/// out the gradients also sum up a norm, and forward and backward do not both need each vector.
TEST(Zero, OneMicroBatchMovesAsMuchAsDataParallelAndHalfAsMuchAgainForParameters) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const std::string family : {"gpt2", "llama"}) {
      const auto sent = [&](int level) {
        return static_cast<double>(
            sent_along_dp(zero_plan(zero_model(family, 64), zero(ranks, level), *device)));
      };
      const double plain = sent(0), d = static_cast<double>(ranks);
      double gradients = 0;
      for (const StatePlan& state :
           zero_plan(zero_model(family, 64), zero(ranks, 0), *device).states) {
        if (state.state.role == Role::Parameter)
          gradients += 2 * (d - 1) / d * static_cast<double>(state.type.bytes());
      }
      const double one = 2 * (d - 1) / d * 4;  // the all-reduce of a number
      std::cout << family << " on " << ranks << ": data parallel " << plain << ", ZeRO-1 "
                << sent(1) << ", ZeRO-2 " << sent(2) << ", ZeRO-3 " << sent(3) << " bytes\n";
      EXPECT_NEAR(plain, gradients, 4 * one);
      EXPECT_NEAR(sent(1), plain, 4 * one);
      EXPECT_EQ(sent(2), sent(1));
      EXPECT_LE(sent(3), 1.5 * plain + 4 * one);
      EXPECT_GT(sent(3), 1.48 * plain);
    }
  }
}

/// In groups of g ranks a state takes what it takes on g ranks.
TEST(Zero, GroupsTakeTheBytesOfTheirSize) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const ModelConfig model = zero_model("gpt2", 65);
  const auto bytes = [&](const ParallelConfig& parallel) {
    const Plan plan = zero_plan(model, parallel, *device);
    return std::vector<std::int64_t>{bytes_of_role(plan, Role::Parameter),
                                     bytes_of_role(plan, Role::Moment),
                                     accumulator_bytes(plan.program(kTrainProgram))};
  };
  for (const std::int64_t ranks : {4, 8}) {
    for (const std::int64_t size : {1, 2, 4}) {
      for (int level = 1; level <= 3; ++level) {
        ParallelConfig grouped = zero(ranks, level, 3);
        grouped.shard_size = size;
        EXPECT_EQ(bytes(grouped), bytes(zero(size, level, 3)))
            << "ZeRO-" << level << " on " << ranks << " ranks in groups of " << size;
      }
    }
  }
}

/// A gradient S is finished in parts of S / g within a group, each of which is summed up over the
/// groups; parameters are gathered within a group.
TEST(Zero, GroupsSendLittleToEachOther) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  ParallelConfig grouped = zero(8, 1);
  grouped.shard_size = 2;
  const Plan plan = zero_plan(zero_model("gpt2", 64), grouped, *device);
  auto sent = planned_counts(plan.program(kTrainProgram));
  double all = 0;
  for (const StatePlan& state : plan.states) {
    if (state.state.role == Role::Parameter) all += static_cast<double>(state.logical.numel() * 4);
  }
  const double group = 2, groups = 4, number = 4 * 2 * 4;  // bytes of some all-reduces of a number
  std::cout << "in groups of 2 of 8 ranks: along dp " << bytes_of(sent["dp"]) << ", along dpo "
            << bytes_of(sent["dpo"]) << " bytes; parameters " << all << " bytes\n";
  EXPECT_NEAR(static_cast<double>(bytes_of(sent["dp"])), 2 * (group - 1) / group * all, number);
  EXPECT_NEAR(static_cast<double>(bytes_of(sent["dpo"])), 2 * (groups - 1) / groups * all / group,
              number);
}

/// Every state of which a rank would have fewer bytes is whole, and so is what is named.
TEST(Zero, SmallStatesAndThoseThatAreNamedStayWhole) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  ParallelConfig parallel = zero(4, 3);
  parallel.shard_threshold = 64 * 64;  // of [64, 64] a rank has 4096 bytes
  parallel.unsharded = {"layers.1.*"};
  const Plan plan = zero_plan(zero_model("gpt2", 64), parallel, *device);
  std::map<std::string, int> seen;
  for (const StatePlan& state : plan.states) {
    if (state.state.role != Role::Parameter && state.state.role != Role::Moment) continue;
    const std::int64_t whole = state.logical.numel() * 4;
    const bool named = matches("layers.1.*", state.state.path), small = whole / 4 < 64 * 64;
    EXPECT_EQ(state.type.bytes(), named || small ? whole : whole / 4) << state.state.path;
    ++seen[named ? "named" : small ? "small" : "sharded"];
  }
  for (const char* kind : {"named", "small", "sharded"}) EXPECT_GT(seen[kind], 0) << kind;
}

struct MeshRun {
  const char* name;
  const char* family;
  ParallelConfig parallel;
};

TEST(Traffic, ARunSendsWhatThePlanSays) {
  ParallelConfig cube{.devices = 8, .tensor = 2, .context = 2, .sequence = true};
  cube.micro_batches = 2;
  cube.shard_optimizer = cube.shard_gradients = cube.shard_parameters = true;
  ParallelConfig grouped = zero(4, 3, 2);
  grouped.shard_size = 2;
  grouped.shard_threshold = 2048;
  ParallelConfig of_experts = zero(4, 3, 2);
  of_experts.experts = 2;
  const MeshRun runs[] = {{"groups", "gpt2", grouped},
                          {"dp2", "gpt2", zero(2, 0)},
                          {"zero1", "llama", zero(3, 1)},
                          {"zero2", "gpt2", zero(2, 2, 3)},
                          {"zero3", "llama", zero(3, 3, 2)},
                          {"tp2", "llama", {.devices = 2, .tensor = 2}},
                          {"tp2 sp", "gpt2", {.devices = 2, .tensor = 2, .sequence = true}},
                          {"dp2 cp2 tp2", "gpt2", cube},
                          {"ep2 dp2 zero3", "mixtral", of_experts},
                          {"ep2 tp2", "mixtral", {.devices = 4, .tensor = 2, .experts = 2}}};
  for (const MeshRun& run : runs) {
    SCOPED_TRACE(run.name);
    std::mutex mutex;
    run_ranks(static_cast<int>(run.parallel.devices), [&](Communicator& world) {
      const std::unique_ptr<Device> device = make_cpu_device({1, -1});
      RankGroup group(zero_plan(zero_model(run.family, 65), run.parallel, *device, world.rank()),
                      *device, &world);
      if (world.rank() > 0) {
        group.follow();
      } else {
        const auto fill = [](BatchInputs& batch) {
          for (const char* name : {"ids", "labels"})
            std::ranges::fill(batch.fill<std::int32_t>(name), 1);
        };
        group.run(kInitProgram);
        group.run(kTrainProgram, fill);
        group.run(kTrainProgram, fill);
        group.stop();
      }
      const Plan& plan = group.plan();
      std::map<std::string, Counts> planned = planned_counts(plan.program(kTrainProgram), 2);
      for (const auto& [axes, counts] : planned_counts(plan.program(kInitProgram))) {
        for (std::size_t k = 0; k < counts.size(); ++k) {
          planned[axes][k].calls += counts[k].calls;
          planned[axes][k].bytes += counts[k].bytes;
        }
      }
      const std::scoped_lock lock(mutex);  // failures are told one at a time
      EXPECT_GT(bytes_of(planned.begin()->second), 0);
      expect_sent(group.engine().sent(), planned, world.rank());
    });
  }
}

/// Flows are the same calls, told by block: their sum is the sum by axes.
TEST(Traffic, FlowsByClassAddUpToTheStep) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  ModelConfig model = zero_model("gpt2", 65);
  model.layers = 4;
  ParallelConfig parallel{.devices = 4, .tensor = 2};
  parallel.micro_batches = 2;
  const Plan plan = zero_plan(model, parallel, *device);
  const ProgramPlan& train = plan.program(kTrainProgram);
  std::map<std::string, std::int64_t> by_axes, by_blocks;
  for (const auto& [axes, counts] : planned_counts(train)) by_axes[axes] = bytes_of(counts);
  std::set<std::string> blocks;
  for (const FlowClass& flows : by_class(flows_of(train))) {
    for (const Flow& flow : flows.flows)
      by_blocks[flow.axes] += flow.total() * static_cast<std::int64_t>(flows.blocks.size());
    for (const std::string& block : flows.blocks) EXPECT_TRUE(blocks.insert(block).second);
  }
  EXPECT_EQ(by_axes, by_blocks);
  EXPECT_EQ(blocks, (std::set<std::string>{"", "layers.0", "layers.1", "layers.2", "layers.3"}));
  EXPECT_EQ(by_class(flows_of(train)).size(), 2u) << "all layers are alike";
}

}  // namespace
}  // namespace tessera
