/// XLA's own plugins, of two versions of the interface: all that a training run does with one.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "pjrt/real_plugin.h"
#include "tessera/pjrt/executable.h"

namespace tessera::pjrt {
namespace {

/// A state that is donated, and the sum of an input over two replicas, added to it.
constexpr std::string_view kStateAndSum = R"(module @m attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>)
      -> tensor<4xf32> {
    %s = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    %n = stablehlo.add %w, %s : tensor<4xf32>
    return %n : tensor<4xf32>
  }
})";

using Floats = std::vector<float>;

Buffer put(const Client& client, const Floats& values, const Device& device,
           std::string_view kind = {}) {
  const Shape shape = {static_cast<std::int64_t>(values.size())};
  return to_device(client, std::as_bytes(std::span(values)), DType::F32, shape, device, kind);
}

Floats read(const Buffer& buffer) {
  Floats out(static_cast<std::size_t>(buffer.type().numel()));
  buffer.read(std::as_writable_bytes(std::span(out)));
  return out;
}

class RealPlugin : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    file_ = real_plugin(GetParam());
    if (file_.empty()) GTEST_SKIP() << how_to_get(GetParam());
  }
  Client client(std::int64_t devices) const {
    return Client(load_plugin(file_), {{"cpu_device_count", devices}});
  }
  std::string file_;
};

TEST_P(RealPlugin, TellsWhatItIs) {
  const Plugin& plugin = load_plugin(file_);
  EXPECT_GE(plugin.version().minor, kOldestInterface.minor);
  EXPECT_EQ(&plugin, &load_plugin(file_));
  const Client two = client(2);
  EXPECT_EQ(two.platform_name(), "cpu");
  EXPECT_FALSE(two.platform_version().empty());
  ASSERT_EQ(two.local_devices().size(), 2u);
  const Device& second = two.local_devices()[1];
  EXPECT_TRUE(second.local);
  EXPECT_EQ(second.kind, "cpu");
  EXPECT_EQ(memory_of(second, "").kind, second.default_memory);
  EXPECT_EQ(two.device(second.id).object, second.object);
}

TEST_P(RealPlugin, KeepsTensorsOfEveryType) {
  const Client one = client(1);
  for (const DType dtype :
       {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32, DType::I64, DType::Bool}) {
    SCOPED_TRACE(to_text(dtype));
    const Shape shape = {2, 3};
    std::vector<std::byte> bytes(static_cast<std::size_t>(6 * size_of(dtype)), std::byte{1});
    if (dtype != DType::Bool) bytes[3] = std::byte{0x3f};
    const Buffer buffer = to_device(one, bytes, dtype, shape, one.local_devices()[0]);
    EXPECT_EQ(buffer.type(), (TensorType{dtype, shape, {}}));
    std::vector<std::byte> back(bytes.size());
    buffer.read(back);
    EXPECT_EQ(back, bytes);
  }
}

TEST_P(RealPlugin, RunsReplicasWithADonatedState) {
  const Client two = client(2);
  CompileOptions options;
  options.num_replicas = 2;
  const Executable step = compile(two, kStateAndSum, options);
  EXPECT_EQ(step.compiled().num_outputs(), 1);
  EXPECT_EQ(step.compiled().num_replicas(), 2);
  EXPECT_EQ(step.compiled().output_types(), (TensorTypes{{DType::F32, {4}, {}}}));
  std::vector<Buffer> states, inputs;
  for (const int id : step.devices()) {
    const float ten = id == step.devices()[0] ? 1 : 10;
    states.push_back(put(two, {0, 0, 0, 0}, two.device(id)));
    inputs.push_back(put(two, {1 * ten, 2 * ten, 3 * ten, 4 * ten}, two.device(id)));
  }
  for (int run = 0; run < 3; ++run) {
    Results results = step.execute({{&states[0], &inputs[0]}, {&states[1], &inputs[1]}});
    for (std::size_t device = 0; device < 2; ++device) {
      EXPECT_TRUE(states[device].deleted());
      EXPECT_FALSE(inputs[device].deleted());
      states[device] = std::move(results[device][0]);
    }
  }
  EXPECT_EQ(read(states[0]), (Floats{33, 66, 99, 132}));
  EXPECT_EQ(read(states[1]), (Floats{33, 66, 99, 132}));
}

INSTANTIATE_TEST_SUITE_P(Xla, RealPlugin, testing::Values("cpu", "cpu-old"), [](const auto& info) {
  std::string name = info.param;
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
});

}  // namespace
}  // namespace tessera::pjrt
