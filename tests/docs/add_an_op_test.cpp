/// The example of docs/internals/passes.md: its code, what it promises, and that the document shows this
/// code and no other. Lines between "// [NAME]" and "// [end]" stand in the document.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "docs/shown.h"
#include "ops/harness.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/table.h"
#include "tessera/passes/grad.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"

namespace tessera {

// [declaration]
/// log(1 + exp(x)): a smooth max(x, 0). Shapes: any; returns the type of x. Errors: x is no float.
Value softplus(Value x, Where where = Where::here());

extern const OpDef kSoftplus;
// [end]

// [reference]
namespace {

/// Plain loops: the truth that every fast kernel is held to.
template <typename T>
void softplus_reference(RefCall& c) {
  const T* x = c.in<T>(0);
  T* y = c.out<T>(0);
  for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i) {
    // exp of a large x overflows; exp(-|x|) does not.
    y[i] = std::max(x[i], T(0)) + std::log1p(std::exp(-std::abs(x[i])));
  }
}

}  // namespace
// [end]

// [entry]
constinit const OpDef kSoftplus = {
    .name = "softplus",
    .doc = "log(1 + exp(x)): a smooth max(x, 0)",
    .infer = [](const OpCall& c) -> TensorTypes {
      require(is_float(c.in(0).dtype), "softplus: x is ", c.in(0),
              ", it needs floats; cast it first");
      return {c.in(0)};
    },
    .factors = [](const OpCall& c) -> Factors { return elementwise_factors(c); },
    // y' = 1 / (1 + exp(-x))
    .grad = [](GradCall& g) -> void { g.din(0) = g.dout(0) * sigmoid(g.in(0)); },
    .flops = [](const OpCall& c) -> double { return 10.0 * static_cast<double>(c.in(0).numel()); },
    .reference = {softplus_reference<float>, softplus_reference<double>},
    .in_place = {InPlace{0, 0}},
    .traits = {.elementwise = true},
};

Value softplus(Value x, Where where) { return x.builder().add(kSoftplus, {x}, {}, where); }
// [end]

namespace test {
namespace {

const Case kRows[] = {
    // [row]
    {&kSoftplus, "", {normal({4, 5})}},
    // [end]
};

const OpDef* find_with_softplus(std::string_view name) {
  return name == kSoftplus.name ? &kSoftplus : find_op(name);
}

TEST(AddAnOp, ValuesAreRightAndLargeOnesDoNotOverflow) {
  for (const Case& row : kRows) {
    const Tensors ins = operands(row);
    const HostTensor y = results(row, ins).at(0);
    for (std::int64_t i = 0; i < y.numel(); ++i)
      EXPECT_NEAR(y.at(i), std::log(1 + std::exp(ins[0].at(i))), 1e-14) << i;
  }
  const HostTensor large = HostTensor::of<float>({2}, {1000, -1000});
  const HostTensor y = evaluate(kSoftplus, {large}, {}).at(0);
  EXPECT_EQ(y.at(0), 1000);
  EXPECT_EQ(y.at(1), 0);
}

TEST(AddAnOp, TypesAreChecked) {
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {3}, {}});
  try {
    softplus(ids);
    FAIL() << "integers were taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("softplus: x is i32[3], it needs floats"),
              std::string::npos)
        << error.what();
  }
}

/// A step: one parameter, the op, its gradient, an update.
Graph step() {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {4, 300}, {}});
  const Value w = builder.state("w", {DType::F32, {300}, {}}, Role::Parameter, {});
  const Value loss = sum_all(softplus(x * w) * 0.001);
  const Value g = gradients(loss, {w})[0];
  builder.set_mark({"", Phase::Update, -1, Where::here()});
  builder.next(w, w - g * 0.1);
  builder.output(Output::Kind::Metric, "loss", loss);
  builder.output(Output::Kind::Metric, "gradient", g);
  return builder.finish();
}

Bindings inputs() {
  Bindings in;
  in.batch["x"] = filled(normal({4, 300}), 1).cast(DType::F32);
  in.states["w"] = filled(normal({300}), 2).cast(DType::F32);
  return in;
}

TEST(AddAnOp, TheGradientAgreesWithFiniteDifferences) {
  const Graph graph = step();
  Interpretation exact;
  exact.f64 = true;
  const auto outputs = [&](const Bindings& in) { return interpret(graph, in, exact); };
  constexpr double kStep = 1e-5;
  Bindings in = inputs();
  in.states["w"] = in.states["w"].cast(DType::F64);
  const HostTensor gradient = outputs(in)[2];
  for (const std::int64_t i : {0, 7, 299}) {
    const auto loss = [&](double move) {
      Bindings moved = in;
      moved.states["w"] = in.states["w"].clone();
      moved.states["w"].set(i, in.states["w"].at(i) + move);
      return outputs(moved)[1].at(0);
    };
    EXPECT_NEAR(gradient.at(i), (loss(kStep) - loss(-kStep)) / (2 * kStep), 1e-8) << i;
  }
}

TEST(AddAnOp, TheTextFormReadsBack) {
  const std::string printed = to_text(step());
  EXPECT_NE(printed.find("softplus("), std::string::npos);
  EXPECT_EQ(to_text(parse_graph(printed, find_with_softplus)), printed);
}

TEST(AddAnOp, TheDeviceRunsItFusedAndInMicrobatches) {
  const Graph graph = step();
  const Bindings in = inputs();
  const std::vector<HostTensor> expected = interpret(graph, in);
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 2});
  for (const std::int64_t microbatches : {1, 2}) {
    Executor executor(compile({{"step", graph, one_device(microbatches)}}, *device), *device);
    executor.write_state("w", in.states.at("w").bytes());
    executor.run("step", [&](BatchInputs& batch) {
      const HostTensor& x = in.batch.at("x");
      std::ranges::copy(x.bytes(), batch.fill("x", x.dtype()).begin());
    });
    // f32 keeps 24 bits; 1200 numbers are summed in another order.
    EXPECT_NEAR(executor.scalar("step", "loss"), expected[1].at(0), 1e-5);
    expect_near(executor.metric("step", "gradient"), expected[2], 1e-7, 1e-5, "gradient");
  }
}

TEST(AddAnOp, TheDocumentShowsTheCodeThatIsTested) {
  expect_shown("docs/internals/passes.md", "tests/docs/add_an_op_test.cpp");
}

}  // namespace
}  // namespace test
}  // namespace tessera
