/// What leaves a step is what the graph says, though states are overwritten in place before the
/// caller reads anything.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"

namespace tessera {
namespace {

const TensorType kType{DType::F32, {2, 3}, {}};

Value state(Builder& builder, std::string_view name) {
  return builder.state(name, kType, Role::Parameter, {});
}

void fill(Executor& executor, const char* path, float value) {
  executor.write_state(path, [&](std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof value)
      std::memcpy(bytes.data() + i, &value, sizeof value);
  });
}

float first(const Executor& executor, const char* path) {
  float out = 0;
  std::memcpy(&out, executor.read_state(path).bytes.data(), sizeof out);
  return out;
}

TEST(Outputs, AMetricOfAStateIsItsOldValue) {
  Builder builder;
  const Value w = state(builder, "w");
  const Value row = reshape(slice(w, 0, 0, 1), {3});  // a view of a view
  builder.output(Output::Kind::Metric, "row", row);
  builder.output(Output::Kind::Metric, "w", w);
  builder.set_mark({"", Phase::Update, -1, {}});
  builder.next(w, w + 1.0);
  const auto device = make_cpu_device({.threads = 1});
  Executor executor(compile({{"step", builder.finish(), one_device(1)}}, *device), *device);
  fill(executor, "w", 5);
  executor.run("step");
  EXPECT_EQ(executor.scalar("step", "w"), 5);
  EXPECT_EQ(executor.scalar("step", "row"), 5);
  EXPECT_EQ(first(executor, "w"), 6);
}

TEST(Outputs, StatesMayChangePlacesAndBecomeTheSame) {
  Builder builder;
  const Value a = state(builder, "a"), b = state(builder, "b"), c = state(builder, "c"),
              d = state(builder, "d");
  builder.set_mark({"", Phase::Update, -1, {}});
  builder.next(a, b);
  builder.next(b, a);
  const Value same = c * 2.0 + 1.0;
  builder.next(c, same);
  builder.next(d, same);
  const auto device = make_cpu_device({.threads = 1});
  Executor executor(compile({{"step", builder.finish(), one_device(1)}}, *device), *device);
  fill(executor, "a", 1);
  fill(executor, "b", 2);
  fill(executor, "c", 3);
  executor.run("step");
  EXPECT_EQ(first(executor, "a"), 2);
  EXPECT_EQ(first(executor, "b"), 1);
  EXPECT_EQ(first(executor, "c"), 7);
  EXPECT_EQ(first(executor, "d"), 7);
}

TEST(Outputs, AValueIsNotOverwrittenWhileAViewOfItIsRead) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {300, 40}, {}});  // more than a tile
  const Value y = x * 2.0;
  builder.output(Output::Kind::Metric, "z", slice(y, 0, 0, 1) - y);
  CompileOptions options;
  options.optimize.fuse = false;
  const auto device = make_cpu_device({.threads = 2});
  Executor executor(compile({{"step", builder.finish(), one_device(1)}}, *device, options),
                    *device);
  executor.run("step", [](BatchInputs& batch) { std::ranges::fill(batch.fill<float>("x"), 1); });
  const HostTensor z = executor.metric("step", "z");
  for (std::int64_t i = 0; i < z.numel(); ++i) ASSERT_EQ(z.at(i), 0) << i;
}

TEST(Outputs, InputsThatNothingReadHaveAPlace) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {4, 3}, {}});
  builder.batch("unread", {DType::F32, {4, 3}, {}});
  state(builder, "idle");
  builder.output(Output::Kind::Metric, "sum", sum_all(x));
  const Graph graph = builder.finish();
  for (const std::int64_t microbatches : {1, 2}) {
    const auto device = make_cpu_device({.threads = 1});
    Executor executor(compile({{"step", graph, one_device(microbatches)}}, *device), *device);
    fill(executor, "idle", 3);
    executor.run("step", [](BatchInputs& batch) {
      std::ranges::fill(batch.fill<float>("x"), 1);
      std::ranges::fill(batch.fill<float>("unread"), 2);
    });
    EXPECT_EQ(executor.scalar("step", "sum"), 12) << "the inputs lie apart";
    EXPECT_EQ(first(executor, "idle"), 3);
  }
}

TEST(Outputs, AMaximumOverMicroBatchesIsNoSum) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {4, 3}, {}});
  const Value n = builder.batch("n", {DType::I32, {4}, {}});
  const Value w = builder.state("w", {DType::F32, {3}, {}}, Role::Parameter, {});
  const Value zero = builder.state("zero", {DType::I32, {}, {}}, Role::Counter, {});
  const Value larger = max(x * w, {0, 1});  // reads a state, so it is computed in every micro-batch
  builder.output(Output::Kind::Metric, "max", larger);
  builder.output(Output::Kind::Metric, "twice", larger + larger);
  builder.output(Output::Kind::Metric, "max of integers", max(n + zero, 0));
  const Graph graph = builder.finish();
  for (const std::int64_t microbatches : {1, 2, 4}) {
    const auto device = make_cpu_device({.threads = 1});
    Executor executor(compile({{"step", graph, one_device(microbatches)}}, *device), *device);
    fill(executor, "w", 1);
    executor.run("step", [](BatchInputs& batch) {
      std::ranges::copy(std::array{-8, -7, -6, -5, -4, -3, -14, -13, -12, -11, -10, -9},
                        batch.fill<float>("x").begin());
      std::ranges::copy(std::array{-7, -8, -9, -10}, batch.fill<std::int32_t>("n").begin());
    });
    EXPECT_EQ(executor.scalar("step", "max"), -3) << microbatches;
    EXPECT_EQ(executor.scalar("step", "twice"), -6) << microbatches;
    EXPECT_EQ(executor.metric("step", "max of integers").at(0), -7) << microbatches;
  }
}

TEST(Outputs, ConstantsThatDifferInOneBitDiffer) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {2}, {}});
  builder.output(Output::Kind::Metric, "twice", sum_all(x * 2.0));
  builder.output(Output::Kind::Metric, "nan", sum_all(x * std::nan("")));
  builder.output(Output::Kind::Metric, "zero", sum_all(x / 0.0));
  builder.output(Output::Kind::Metric, "minus zero", sum_all(x / -0.0));
  const auto device = make_cpu_device({.threads = 1});
  Executor executor(compile({{"step", builder.finish(), one_device(1)}}, *device), *device);
  executor.run("step", [](BatchInputs& batch) { std::ranges::fill(batch.fill<float>("x"), 1); });
  EXPECT_EQ(executor.scalar("step", "twice"), 4);
  EXPECT_TRUE(std::isnan(executor.scalar("step", "nan")));
  EXPECT_EQ(executor.scalar("step", "zero"), INFINITY);
  EXPECT_EQ(executor.scalar("step", "minus zero"), -INFINITY);
}

TEST(Outputs, RowsOfTheBatchDoNotLeaveInPieces) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {6, 3}, {}});
  const Value y = x * builder.state("w", {DType::F32, {3}, {}}, Role::Parameter, {});
  builder.output(Output::Kind::Metric, "sum", sum_all(y));
  builder.output(Output::Kind::Metric, "rows", y);
  const Graph graph = builder.finish();
  const auto device = make_cpu_device({.threads = 1});
  EXPECT_NO_THROW(compile({{"step", graph, one_device(1)}}, *device));
  try {
    compile({{"step", graph, one_device(2)}}, *device);
    FAIL() << "the rows of the last micro-batch would be all that is seen";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("output 'rows' cannot be cut into micro-batches"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tessera
