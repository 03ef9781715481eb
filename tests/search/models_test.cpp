// The search on a large model: what it finds, and how long it takes. Nothing is allocated for it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "machine_line.h"
#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/optimizer.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/simplify.h"
#include "tessera/search/search.h"

namespace tessera {
namespace {

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/// LLaMA 3 with 8 billion parameters where it has 32 layers.
Graph llama_step(std::int64_t layers, std::int64_t batch = 64, std::int64_t context = 4096) {
  ModelConfig model;
  model.family = "llama";
  model.layers = layers;
  model.heads = 32;
  model.kv_heads = 8;
  model.width = 4096;
  model.ffn_width = 14336;
  model.vocabulary = 128256;
  model.context = context;
  model.tied_head = false;
  model.bias = false;
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {batch, context}, {}}),
              labels = builder.batch("labels", {DType::I32, {batch, context}, {}}),
              samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  const Value loss = cross_entropy_mean(task_of(model).text->logits(ids, {}), labels).value();
  std::vector<Value> all;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) all.emplace_back(builder, state.value);
  }
  update(all, gradients(loss, all), loss, samples, batch, OptimizerConfig{});
  builder.output(Output::Kind::Metric, "loss", loss);
  return simplify(merge_pads(builder.finish()));
}

/// Eight devices to a server, servers behind one network.
Machine servers() {
  Machine out = parse_machine("core=300GB/s+3us host=25GB/s+8us rack=25GB/s+10us");
  out.core.units = 8;
  out.device.f32 = {19500};
  out.device.other_gigaflops_per_s = 19500;
  out.device.memory_gigabytes_per_s = 1500;
  out.device.start_microseconds = 5;
  return out;
}

struct Measured {
  SearchReport report;
  double cpu = 0;
};
Measured measured(const Graph& step, const std::string& mesh, const SearchLimits& limits = {},
                  const Machine& machine = servers()) {
  const double before = cpu_seconds();
  const Searched found =
      search_placements(step, {parse_mesh(mesh)}, SearchMode::DynamicProgramming, machine, limits);
  return {found.report, cpu_seconds() - before};
}

std::string row(const char* what, std::int64_t n, const Measured& m) {
  const SearchReport& r = m.report;
  return text(what, " ", n, ": step ", r.step_seconds, " s, gap ", 100 * r.gap, " %, ", r.ops,
              " ops, ", r.decisions, " decisions (", r.folded, " folded), width ", r.width, ", ",
              m.cpu, " s of one core\n");
}

/// Figure 5 of the planner: PyTorch's autoparallel takes 46.8 s for it.
TEST(SearchModels, LlamaOn64Devices) {
  const Graph step = llama_step(32);
  const Measured m = measured(step, "a=4@rack b=4@host c=4@core");
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf("%sresident %ld MiB\n", row("devices", 64, m).c_str(), use.ru_maxrss / 1024);
  EXPECT_EQ(m.report.gap, 0);
  EXPECT_GT(m.report.folded, m.report.decisions / 2);
  EXPECT_LT(m.cpu, 8);  // 1 in a release build; sanitizers take longer
}

/// Figure 6: 192 layers cost as 24 do, and devices cost nothing.
TEST(SearchModels, TimeAgainstLayersAndDevices) {
  for (const std::int64_t layers : {24, 48, 96, 192}) {
    const Measured m = measured(llama_step(layers), "a=4@rack b=4@host c=4@core");
    std::printf("%s", row("layers", layers, m).c_str());
    EXPECT_EQ(m.report.gap, 0);
  }
  const std::pair<std::int64_t, const char*> meshes[] = {{8, "a=2@rack b=2@host c=2"},
                                                         {16, "a=4@rack b=2@host c=2"},
                                                         {64, "a=4@rack b=4@host c=4"},
                                                         {512, "a=8@rack b=8@host c=8"},
                                                         {4096, "a=16@rack b=16@host c=16"}};
  const Graph step = llama_step(32, 4096);
  for (const auto& [devices, mesh] : meshes) {
    const Measured m = measured(step, mesh);
    std::printf("%s", row("devices", devices, m).c_str());
    EXPECT_EQ(m.report.gap, 0);
  }
}

/// Each message takes long on this machine, so weights would rather not be gathered.
TEST(SearchModels, LessMemoryNeverTakesLess) {
  Machine slow = servers();
  slow.core.microseconds = slow.host.microseconds = 10'000;
  const Graph step = llama_step(4, 32, 512);
  const char* mesh = "a=4@host b=8@core";
  const Measured free = measured(step, mesh, {}, slow);
  SearchReport before = free.report;
  for (const double part : {1.0, 0.9, 0.8, 0.7, 0.6, 0.5}) {
    SearchLimits limits;
    limits.bytes = part * free.report.bytes;
    const Measured m = measured(step, mesh, limits, slow);
    std::printf("%3.0f %% of its memory: kept %.2f GiB, %s", 100 * part,
                m.report.bytes / 1073741824, row("layers", 4, m).c_str());
    EXPECT_LE(m.report.bytes, limits.bytes);
    EXPECT_GE(m.report.step_seconds, before.step_seconds);
    EXPECT_LT(m.report.gap, 0.1);
    before = m.report;
  }
}

}  // namespace
}  // namespace tessera
