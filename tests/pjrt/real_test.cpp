/// XLA's own plugins, of two versions of the interface: all that a training run does with one.

#include <gtest/gtest.h>

#include <algorithm>

#include "pjrt/real_plugin.h"
#include "pjrt/test_plugin.h"
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

/// A product of [2,3] and [3,2], in which a wrong order of dims would be seen.
constexpr std::string_view kProduct = R"(module @product {
  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<2xi1>) {
    %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST]
        : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %t = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    return %d, %t : tensor<2x2xf32>, tensor<2xi1>
  }
})";

TEST_P(RealPlugin, SerialisesAndLoads) {
  const Client one = client(1);
  const Device& device = one.local_devices()[0];
  const Floats x = {1, 2, 3, 4, 5, 6}, y = {1, 0, 0, 1, 2, 2};
  const auto put_matrix = [&](const Floats& values, const Shape& shape) {
    return to_device(one, std::as_bytes(std::span(values)), DType::F32, shape, device);
  };
  const Buffer left = put_matrix(x, {2, 3}), right = put_matrix(y, {3, 2});
  const Executable compiled = compile(one, kProduct);
  const TensorTypes types = {{DType::F32, {2, 2}, {}}, {DType::Bool, {2}, {}}};
  EXPECT_EQ(compiled.compiled().output_types(), types);
  EXPECT_EQ(compiled.compiled().memory().argument, 48);
  EXPECT_FALSE(compiled.compiled().optimized().code.empty());
  const std::string bytes = compiled.compiled().serialize();
  const Executable loaded = load(one, bytes);
  for (const Executable* const program : {&compiled, &loaded}) {
    const Results results = program->execute({{&left, &right}});
    EXPECT_EQ(read(results[0][0]), (Floats{7, 8, 16, 17}));
    EXPECT_EQ(results[0][1].type(), types[1]);
  }
  EXPECT_TRUE(has(error_of([&] { load(one, "damaged"); }), "compile the program again"));
}

TEST_P(RealPlugin, CopiesBetweenDevicesAndMemories) {
  const Client two = client(2);
  const Floats values = {1, 2, 3};
  const Buffer first = put(two, values, two.local_devices()[0]);
  const Buffer second = first.copy_to(two.local_devices()[1]);
  EXPECT_EQ(second.device(), two.local_devices()[1].id);
  const Buffer pinned = first.copy_to(two.local_devices()[1], "pinned_host");
  EXPECT_EQ(pinned.memory_kind(), "pinned_host");
  const Buffer made = put(two, values, two.local_devices()[0], "pinned_host");
  for (const Buffer* const buffer : {&second, &pinned, &made}) EXPECT_EQ(read(*buffer), values);
}

TEST_P(RealPlugin, SaysWhatItDoesNotTake) {
  const Client one = client(1);
  const std::string words = error_of([&] { compile(one, "module { these are words }"); });
  EXPECT_TRUE(has(words, file_ + ": PJRT_Client_Compile: ")) << words;
  EXPECT_TRUE(has(words, "the compiler cannot read the module")) << words;
  CompileOptions flag;
  flag.flags = {{"xla_no_such_flag", true}};
  const std::string no_flag = error_of([&] { compile(one, kProduct, flag); });
  EXPECT_TRUE(has(no_flag, "xla_no_such_flag")) << no_flag;
  CompileOptions many;
  many.num_replicas = 3;
  EXPECT_FALSE(error_of([&] { compile(one, kProduct, many); }).empty());
  const Buffer vector = put(one, {1, 2, 3}, one.local_devices()[0]);
  const std::string types = error_of([&] { compile(one, kProduct).execute({{&vector, &vector}}); });
  EXPECT_TRUE(has(types, "PJRT_LoadedExecutable_Execute: INVALID_ARGUMENT")) << types;
}

TEST(RealPlugins, TwoAtOnce) {
  const std::string files[] = {real_plugin("cpu"), real_plugin("cpu-old")};
  if (files[0].empty() || files[1].empty()) GTEST_SKIP() << how_to_get("cpu and cpu-old");
  const Client clients[] = {Client(load_plugin(files[0])), Client(load_plugin(files[1]))};
  EXPECT_NE(clients[0].plugin().version(), clients[1].plugin().version());
  Floats sums;
  for (const Client& client : clients) {
    const Buffer there = put(client, {1, 2}, client.local_devices()[0]);
    for (const float value : read(there)) sums.push_back(value);
  }
  EXPECT_EQ(sums, (Floats{1, 2, 1, 2}));
}

INSTANTIATE_TEST_SUITE_P(Xla, RealPlugin, testing::Values("cpu", "cpu-old"), [](const auto& info) {
  std::string name = info.param;
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
});

}  // namespace
}  // namespace tessera::pjrt
