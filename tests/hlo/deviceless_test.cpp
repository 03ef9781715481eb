/// Programs of the model families compiled for GPUs that are not here, by XLA's CUDA plugin.

#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/programs.h"
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
  try {
    return &pjrt::load_plugin(pjrt::find_plugin("cuda", repo_file("build/plugins")));
  } catch (const Error&) {
    return nullptr;
  }
}

class CompilesForH100 : public testing::TestWithParam<const char*> {};

/// What XLA says of arguments is what the module says of them, and states are updated in place.
TEST_P(CompilesForH100, Training) {
  const pjrt::Plugin* plugin = cuda_plugin();
  if (plugin == nullptr)
    GTEST_SKIP() << "no plugin cuda in build/plugins: ./dev accelerator cuda13 brings it";
  const auto& programs = model_programs();
  const auto found = std::ranges::find(programs, std::string(GetParam()), &ModelProgram::name);
  ASSERT_TRUE(found != programs.end()) << "no program " << GetParam();
  hlo::EmitOptions options;
  options.pinned_host = true;
  const hlo::Module module = hlo::whole_module("train", found->make(), options);
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
  std::cout << GetParam() << ": text " << module.text.size() << " bytes, peak "
            << memory.device_peak() << " bytes\n";
}

INSTANTIATE_TEST_SUITE_P(Families, CompilesForH100,
                         testing::Values("gpt2 dp2 tp2 in bf16, micro-batches",
                                         "llama cp2 dp2 ZeRO-3 in bf16",
                                         "bert dp2 tp2, micro-batches", "encoder-decoder tp2",
                                         "t5 dp2 tp2, micro-batches",
                                         "vit dp3 ZeRO-3, micro-batches"),
                         [](const auto& info) {
                           std::string name = info.param;
                           name = name.substr(0, name.find(' '));
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

}  // namespace

}  // namespace tessera::test
