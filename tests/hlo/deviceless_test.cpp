/// Programs of the model families compiled for GPUs that are not here, by XLA's CUDA plugin.

#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/model_runs.h"
#include "repo_file.h"
#include "tessera/base/error.h"
#include "tessera/hlo/modules.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/attention.h"
#include "tessera/pjrt/plugin.h"
#include "tessera/pjrt/topology.h"

namespace tessera::test {

namespace {

constexpr const char *kCudnn = "__cudnn$fmhaSoftmax", *kGpu = "NVIDIA H100 80GB HBM3",
                     *kNoCudaPlugin =
                         "no plugin cuda in build/plugins: ./dev accelerator cuda13 brings it";

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

class CompilesForH100 : public testing::TestWithParam<ModelRun> {};

/// What XLA says of arguments is what the module says of them, and states are updated in place.
TEST_P(CompilesForH100, Training) {
  const pjrt::Plugin* plugin = cuda_plugin();
  if (plugin == nullptr) GTEST_SKIP() << kNoCudaPlugin;
  const std::vector<Program> programs = GetParam().programs();
  const auto found = std::ranges::find_if(programs, trains);
  ASSERT_TRUE(found != programs.end());
  hlo::EmitOptions options;
  options.pinned_host = options.cudnn_attention = true;
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
    {"gpt2",
     "--devices 4 --tensor-model-parallel-size 2 --micro-batch-size 3 --bf16 --heads 2 --dropout "
     "0"},  // attention by cuDNN
    {"llama", "--kv-heads 2 --devices 4 --context-parallel-size 2 --zero-stage 3 --bf16"},
    {"bert", "--devices 4 --tensor-model-parallel-size 2 --micro-batch-size 3"},
    {"transformer", "--devices 2 --tensor-model-parallel-size 2 --dropout 0"},
    {"t5", "--devices 2 --zero-stage 2 --micro-batch-size 3 --dropout 0"},
    {"vit", "--devices 3 --zero-stage 3 --micro-batch-size 2"},
};

/// An attention op of `tokens` tokens of LLaMA 2 7B's heads, or grouped as LLaMA 3 8B's, alone.
hlo::Module attention_alone(const OpDef& op, std::int64_t tokens, std::int64_t key_heads,
                            const hlo::EmitOptions& options) {
  const Shape q = {1, tokens, key_heads, 32 / key_heads, 128}, k = {1, tokens, key_heads, 128};
  const bool grad = &op == &kAttentionGrad;
  Builder builder;
  std::vector<Value> ins;
  const auto add = [&](const Shape& shape, DType dtype = DType::BF16) {
    ins.push_back(builder.batch(text("in", ins.size()), {dtype, shape, {}}));
  };
  if (grad) add(q);
  add(q), add(k), add(k);
  if (grad) add(q), add({1, q[2], q[3], tokens}, DType::F32);
  builder.add_all(op, ins, {true, 0.125, 0.0, false, std::string()});
  const Graph graph = builder.finish();
  return hlo::node_module(graph, graph.size() - 1, options);
}

/// Of a long context the scores are never there at once; cuDNN's kernels keep what they need to
/// themselves, and where cuDNN is absent the compiler does not know how much that is.
TEST(CompilesAlone, AttentionOfALongContext) {
  const pjrt::Plugin* plugin = cuda_plugin();
  if (plugin == nullptr) GTEST_SKIP() << kNoCudaPlugin;
  const pjrt::Topology topology = pjrt::gpu_topology(*plugin, kGpu, 1, 1);
  constexpr std::int64_t kTokens = 16'384;
  const std::int64_t scores = 32 * kTokens * kTokens * size_of(DType::F32);
  for (const std::int64_t key_heads : {32, 8}) {
    for (const OpDef* op : {&kAttention, &kAttentionGrad}) {
      for (const bool cudnn : {false, true}) {
        hlo::EmitOptions options;
        options.cudnn_attention = cudnn;
        const pjrt::Compiled compiled =
            topology.compile(attention_alone(*op, kTokens, key_heads, options).text);
        const std::int64_t temp = compiled.memory().temp;
        const bool called = compiled.optimized().code.find(kCudnn) != std::string::npos;
        EXPECT_EQ(called, cudnn);
        EXPECT_LE(temp, cudnn ? scores / 1000 : scores / 20) << op->name;
        std::cout << op->name << ", " << key_heads << " key heads" << (cudnn ? ", cuDNN" : "")
                  << ": temporaries " << temp << " bytes; the scores would be " << scores << "\n";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CompilesForH100, testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param.family); });

}  // namespace

}  // namespace tessera::test
