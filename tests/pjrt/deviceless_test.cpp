/// XLA's CUDA plugin where there is no GPU: it compiles for those that it has descriptions of.

#include <gtest/gtest.h>

#include <algorithm>

#include "pjrt/real_plugin.h"
#include "pjrt/test_plugin.h"
#include "tessera/pjrt/client.h"
#include "tessera/pjrt/topology.h"

namespace tessera::pjrt {
namespace {

constexpr const char* kH100 = "NVIDIA H100 80GB HBM3";

/// A state in place and a sum over 16 replicas beside a product.
constexpr std::string_view kSumAndProduct = R"(module @m attributes {mhlo.num_replicas = 16 : i32} {
  func.func public @main(%w: tensor<1024x1024xbf16> {tf.aliasing_output = 0 : i32},
                         %x: tensor<1024x1024xbf16>)
      -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) {
    %s = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
        %c = stablehlo.add %a, %b : tensor<bf16>
        stablehlo.return %c : tensor<bf16>
    }) {replica_groups = dense<[[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]]> : tensor<1x16xi64>}
        : (tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    %n = stablehlo.add %w, %s : tensor<1024x1024xbf16>
    %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    return %n, %d : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
  }
})";

/// A state in the host's memory, in place.
constexpr std::string_view kOnTheHost = R"(module @m {
  func.func public @main(
      %m: tensor<1024x1024xf32> {mhlo.memory_kind = "pinned_host", tf.aliasing_output = 0 : i32},
      %g: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32> {mhlo.memory_kind = "pinned_host"}) {
    %d = stablehlo.custom_call @annotate_device_placement(%m) {has_side_effect = true,
        mhlo.frontend_attributes = {_xla_buffer_placement = "device"}}
        : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %n = stablehlo.add %d, %g : tensor<1024x1024xf32>
    %h = stablehlo.custom_call @annotate_device_placement(%n) {has_side_effect = true,
        mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}}
        : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %h : tensor<1024x1024xf32>
  }
})";

class Deviceless : public testing::Test {
 protected:
  void SetUp() override {
    file_ = real_plugin("cuda");
    if (file_.empty()) GTEST_SKIP() << how_to_get("cuda13");
  }
  std::string file_;
};

TEST_F(Deviceless, KnowsGpus) {
  const Plugin& plugin = load_plugin(file_);
  const std::vector<std::string> names = gpu_names(plugin);
  EXPECT_TRUE(std::find(names.begin(), names.end(), kH100) != names.end()) << join(names);
  EXPECT_TRUE(std::find(names.begin(), names.end(), "MI300X") == names.end()) << join(names);
  const std::string none = error_of([&] { gpu_topology(plugin, "H300", 1, 1); });
  EXPECT_TRUE(has(none, "0 GPUs called H300; give one of")) << none;
  const std::string several = error_of([&] { gpu_topology(plugin, "H100", 1, 1); });
  EXPECT_TRUE(has(several, "give one of NVIDIA H100")) << several;
  EXPECT_EQ(fault_of([&] { gpu_topology(plugin, kH100, 0, 1); }), Fault::Usage);
}

TEST_F(Deviceless, CompilesForTwoHostsOfEight) {
  const Topology topology = gpu_topology(load_plugin(file_), kH100, 2, 8);
  EXPECT_EQ(topology.platform_name(), "cuda");
  const std::vector<DescribedDevice> devices = topology.devices();
  ASSERT_EQ(devices.size(), 16u);
  EXPECT_EQ(devices[15].process, 1);
  EXPECT_EQ(devices[15].kind, kH100);
  const Value* capability = find(devices[15].attributes, "compute_capability");
  ASSERT_NE(capability, nullptr) << join(devices[15].attributes);
  EXPECT_EQ(*capability, Value(std::string("9.0")));
  CompileOptions options;
  options.num_replicas = 16;
  options.flags = {{"xla_gpu_enable_latency_hiding_scheduler", true}};
  const Compiled compiled = topology.compile(kSumAndProduct, options);
  const CompiledMemory memory = compiled.memory();
  constexpr std::int64_t kMatrix = 2 << 20;  // bytes
  EXPECT_EQ(memory.argument, 2 * kMatrix);
  EXPECT_EQ(memory.alias, kMatrix);
  EXPECT_GE(memory.device_peak(), 3 * kMatrix);
  EXPECT_TRUE(has(compiled.optimized().code, "all-reduce"));
  EXPECT_FALSE(compiled.serialize().empty());
  options.flags = {{"xla_gpu_no_such_flag", true}};
  const std::string error = error_of([&] { topology.compile(kSumAndProduct, options); });
  EXPECT_TRUE(has(error, "PJRT_Compile: INVALID_ARGUMENT")) << error;
}

TEST_F(Deviceless, CountsTheHostsMemory) {
  const Topology topology = gpu_topology(load_plugin(file_), kH100, 1, 1);
  const CompiledMemory memory = topology.compile(kOnTheHost).memory();
  CompileOptions tools;  // CUDA's compilers, as they would be given
  tools.flags = {{"xla_gpu_cuda_data_dir", std::string("no/such/folder")}};
  EXPECT_EQ(topology.compile(kOnTheHost, tools).memory(), memory);
  EXPECT_EQ(memory.host_argument, 4 << 20);
  EXPECT_EQ(memory.host_alias, 4 << 20);
  EXPECT_EQ(memory.argument, 4 << 20);
}

TEST_F(Deviceless, SaysThatThereIsNoGpu) {
  const Plugin& plugin = load_plugin(file_);
  EXPECT_EQ(*find(plugin.attributes(), "cuda_version"), Value(std::int64_t{13000}));
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU here";
  const std::string error = error_of([&] { const Client client(plugin); });
  EXPECT_TRUE(has(error, "no device of this plugin can be used")) << error;
  EXPECT_EQ(fault_of([&] { const Client client(plugin); }), Fault::Resource);
}

}  // namespace
}  // namespace tessera::pjrt
