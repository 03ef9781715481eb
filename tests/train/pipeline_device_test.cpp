/// Pipelines on devices: stages as ranks, each with a plan of its own, give the numbers of one
/// device.

#include <gtest/gtest.h>

#include <mutex>

#include "tessera/comm/local.h"
#include "tessera/plan/traffic.h"
#include "tessera/train/crew.h"
#include "tessera/train/programs.h"
#include "train/step_plan.h"

namespace tessera {
namespace {

constexpr std::int64_t kStagedBatch = 24, kStagedSteps = 3;

struct Staged {
  const char* name;
  const char* family;
  PipelineStrategy pipeline;
  ParallelConfig parallel;  // of one stage
};

std::ostream& operator<<(std::ostream& out, const Staged& c) { return out << c.name; }

ModelConfig staged_model(const std::string& family) {
  ModelConfig c;
  c.family = family;
  c.layers = 6;
  c.heads = 4;
  c.width = 16;
  c.context = 8;
  c.vocabulary = 19;
  c.dropout = 0.1;
  return c;
}

Plan staged_plan(const Staged& c, Device& device, int rank, std::int64_t guard_bytes = 0) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  const ModelConfig model = staged_model(c.family);
  const Graph step = train_step(model, optimizer, kStagedBatch, model.context);
  ParallelConfig once = c.parallel;
  once.micro_batches = 1;
  Strategy whole = strategy_of(once, BatchSplit::Whole), cut = strategy_of(c.parallel);
  whole.pipeline = cut.pipeline = c.pipeline;
  CompileOptions options;
  options.rank = rank;
  options.guard_bytes = guard_bytes;
  return compile({{kInitProgram, initialise(step), whole}, {kTrainProgram, step, cut}}, device,
                 options);
}

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, HostTensor> states;
};

void fill_batch(BatchInputs& batch, std::int64_t step) {
  const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids");
  const std::span<std::int32_t> labels = batch.fill<std::int32_t>("labels");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>((i * 7 + static_cast<std::size_t>(step) * 5) % 19);
    labels[i] = i % 6 == 0 ? -100 : static_cast<std::int32_t>((i * i + 3) % 19);
  }
}

void lead(Crew& crew, Outcome& out) {
  crew.run(kInitProgram);
  for (std::int64_t step = 0; step < kStagedSteps; ++step) {
    crew.run(kTrainProgram, [&](BatchInputs& batch) { fill_batch(batch, step); });
    out.losses.push_back(crew.executor().scalar(kTrainProgram, "loss"));
    out.norms.push_back(crew.executor().scalar(kTrainProgram, "grad_norm"));
  }
  for (const CheckpointTensor& tensor : crew.states()) {
    HostTensor& copy = out.states[tensor.name] = HostTensor(tensor.type);
    std::ranges::copy(tensor.bytes, copy.bytes().begin());
  }
  crew.forget_states();
  crew.dismiss();
}

Outcome run(const Staged& c, std::int64_t guard_bytes = 0) {
  Outcome out;
  std::mutex mutex;
  const std::int64_t ranks = c.pipeline.stages * c.parallel.devices;
  if (ranks == 1) {
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    Crew crew(staged_plan(c, *device, 0, guard_bytes), *device);
    lead(crew, out);
    return out;
  }
  run_ranks(static_cast<int>(ranks), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    Crew crew(staged_plan(c, *device, world.rank(), guard_bytes), *device, &world);
    if (world.rank() == 0) {
      lead(crew, out);
    } else {
      crew.follow();
    }
    std::map<std::string, Counts> planned =
        planned_counts(crew.plan().program(kTrainProgram), kStagedSteps);
    for (const auto& [axes, counts] : planned_counts(crew.plan().program(kInitProgram))) {
      for (std::size_t k = 0; k < counts.size(); ++k) {
        planned[axes][k].calls += counts[k].calls;
        planned[axes][k].bytes += counts[k].bytes;
      }
    }
    const std::scoped_lock lock(mutex);  // failures are told one at a time
    EXPECT_EQ(crew.executor().sent(), planned) << "rank " << world.rank();
  });
  return out;
}

void expect_near(const HostTensor& a, const HostTensor& b, double bound, const std::string& what) {
  for (std::int64_t i = 0; i < a.numel(); ++i)
    ASSERT_NEAR(a.at(i), b.at(i), bound) << what << " [" << i << "]";
}

class StagedStep : public testing::TestWithParam<Staged> {};

TEST_P(StagedStep, EqualsOneDevice) {
  const Staged& c = GetParam();
  const Outcome one = run({"", c.family, {}, {}}), staged = run(c, 64);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(staged.losses[i], one.losses[i], 1e-5 * one.losses[i]) << "step " << i + 1;
    EXPECT_NEAR(staged.norms[i], one.norms[i], 1e-4 * one.norms[i]) << "step " << i + 1;
  }
  ASSERT_EQ(staged.states.size(), one.states.size());
  for (const auto& [path, value] : one.states) {
    // A key bias has no gradient but rounding noise, of which Adam makes a step of the rate.
    const double bound = path.ends_with("qkv.bias") ? 1e-2 : 2e-4;
    expect_near(staged.states.at(path), value, bound, path);
  }
}

TEST_P(StagedStep, TwoRunsAreTheSameBits) {
  const Outcome a = run(GetParam()), b = run(GetParam());
  EXPECT_EQ(a.losses, b.losses);
  for (const auto& [path, value] : a.states) expect_near(b.states.at(path), value, 0, path);
}

ParallelConfig mesh(std::int64_t micro_batches, std::int64_t dp = 1, std::int64_t tp = 1,
                    int level = 0, std::int64_t cp = 1, bool sequence = false) {
  ParallelConfig out = zero(dp * tp * cp, level, micro_batches);
  out.tensor = tp;
  out.context = cp;
  out.sequence = sequence;
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, StagedStep,
    testing::Values(Staged{"Gpipe2", "gpt2", {2, 1, "gpipe"}, mesh(4)},
                    Staged{"One2", "gpt2", {2, 1, "1f1b"}, mesh(4)},
                    Staged{"One2Mb1", "llama", {2, 1, "1f1b"}, mesh(1)},
                    Staged{"One3Mb2", "llama", {3, 1, "1f1b"}, mesh(2)},
                    Staged{"One4Mb8", "gpt2", {4, 1, "1f1b"}, mesh(8)},
                    Staged{"Interleaved2", "gpt2", {2, 2, "interleaved"}, mesh(4)},
                    Staged{"Interleaved3Mb6", "llama", {3, 2, "interleaved"}, mesh(6)},
                    Staged{"ZbH1", "gpt2", {3, 1, "zb-h1"}, mesh(6)},
                    Staged{"ZbV2", "gpt2", {2, 2, "zb-v"}, mesh(4)},
                    Staged{"ZbV4", "llama", {4, 2, "zb-v"}, mesh(8)},
                    Staged{"Interleaved1", "gpt2", {1, 2, "interleaved"}, mesh(4)},
                    Staged{"ZbV1", "gpt2", {1, 2, "zb-v"}, mesh(2)},
                    Staged{"Dp2", "gpt2", {2, 1, "1f1b"}, mesh(3, 2)},
                    Staged{"Tp2", "gpt2", {2, 1, "1f1b"}, mesh(4, 1, 2)},
                    Staged{"Tp2Sp", "llama", {2, 1, "zb-h1"}, mesh(4, 1, 2, 0, 1, true)},
                    Staged{"Cp2", "gpt2", {2, 2, "interleaved"}, mesh(4, 1, 1, 0, 2)},
                    Staged{"Zero1", "gpt2", {3, 1, "1f1b"}, mesh(4, 2, 1, 1)},
                    Staged{"Zero2", "llama", {2, 1, "gpipe"}, mesh(3, 2, 1, 2)},
                    Staged{"Zero3", "gpt2", {2, 2, "zb-v"}, mesh(4, 2, 1, 3)}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera
