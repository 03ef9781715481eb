/// Programs of the model families compiled for GPUs that are not here, by XLA's CUDA plugin.

#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/model_runs.h"
#include "repo_file.h"
#include "tessera/base/error.h"
#include "tessera/hlo/modules.h"
#include "tessera/pjrt/plugin.h"
#include "tessera/pjrt/topology.h"

namespace tessera::test {

namespace {

constexpr const char* kGpu = "NVIDIA H100 80GB HBM3";

/// Null where the plugin is not there.
const pjrt::Plugin* cuda_plugin() {
  std::string file;
  try {
    file = pjrt::find_plugin("cuda", repo_file("build/plugins"));
  } catch (const Error&) {
    return nullptr;
  }
  return &pjrt::load_plugin(file);
}

bool trains(const Program& program) {
  return std::ranges::any_of(
      program.regions, [](const Region& region) { return region.kind == RegionKind::Backward; });
}

class CompilesForH100 : public testing::TestWithParam<ModelRun> {};

/// What XLA says of arguments is what the module says of them, and states are updated in place.
TEST_P(CompilesForH100, Training) {
  const pjrt::Plugin* plugin = cuda_plugin();
  if (plugin == nullptr)
    GTEST_SKIP() << "no plugin cuda in build/plugins: ./dev accelerator cuda13 brings it";
  const std::vector<Program> programs = GetParam().programs();
  const auto found = std::ranges::find_if(programs, trains);
  ASSERT_TRUE(found != programs.end());
  hlo::EmitOptions options;
  options.pinned_host = true;
  const hlo::Module module = hlo::whole_module("train", *found, options);
  const auto ranks = static_cast<int>(module.replicas());
  const pjrt::Topology topology = pjrt::gpu_topology(*plugin, kGpu, 1, ranks);
  const pjrt::CompiledMemory memory =
      topology.compile(module.text, {.num_replicas = ranks}).memory();
  std::int64_t arguments = 0, donated = 0;
  for (const hlo::Port& port : module.arguments) arguments += port.result.type.bytes();
  for (const auto& [argument, result] : module.donations)
    donated += module.arguments[static_cast<std::size_t>(argument)].result.type.bytes();
  EXPECT_GE(memory.argument, arguments);
  EXPECT_GE(memory.alias, donated);
  EXPECT_GE(memory.device_peak(), arguments);
  std::cout << GetParam().family << ": text " << module.text.size() << " bytes, peak "
            << memory.device_peak() << " bytes\n";
}

constexpr ModelRun kFamilies[] = {
    {"gpt2", "--devices 4 --tensor-model-parallel-size 2 --micro-batch-size 3 --bf16"},
    {"llama", "--kv-heads 2 --devices 4 --context-parallel-size 2 --zero-stage 3 --bf16"},
    {"bert", "--devices 4 --tensor-model-parallel-size 2 --micro-batch-size 3"},
    {"transformer", "--devices 2 --tensor-model-parallel-size 2 --dropout 0"},
    {"t5", "--devices 2 --zero-stage 2 --micro-batch-size 3 --dropout 0"},
    {"vit", "--devices 3 --zero-stage 3 --micro-batch-size 2"},
};

INSTANTIATE_TEST_SUITE_P(Families, CompilesForH100, testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param.family); });

}  // namespace

}  // namespace tessera::test
