/// A program runs on the batch inputs of its own run: none are left from an earlier one, and no
/// value that a run leaves can be mistaken for one.

#include "tessera/tensor/batch_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "tessera/base/text.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

/// sum(x * y), x and y f32 [2, 3]; and a second program with an input of its own.
Plan plan_of(Device& device) {
  Builder step, other;
  const TensorType type{DType::F32, {2, 3}, {}};
  step.output(Output::Kind::Metric, "sum", sum_all(step.batch("x", type) * step.batch("y", type)));
  other.output(Output::Kind::Metric, "double", other.batch("z", type) * 2.0);
  return compile({{"step", step.finish(), one_device(1)}, {"other", other.finish(), one_device(1)}},
                 device);
}

class BatchInputsTest : public testing::Test {
 protected:
  /// What `run` refuses; empty where it does not.
  template <typename Run>
  static std::string refusal(const Run& run) {
    try {
      run();
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage) << error.what();
      return error.what();
    }
  }
  static void fill_all(BatchInputs& batch) {
    for (const char* name : {"x", "y"}) std::ranges::fill(batch.fill<float>(name), 2.0F);
  }

  std::unique_ptr<Device> device_ = make_cpu_device({.threads = 1});
  Executor executor_{plan_of(*device_), *device_};
};

TEST_F(BatchInputsTest, ARunWithoutAnInputIsRefused) {
  const struct {
    const char* name;
    std::function<void(BatchInputs&)> fill;
    const char* says;
  } cases[] = {
      {"none is filled", [](BatchInputs&) {}, "without its batch input 'x'"},
      {"the second is left out", [](BatchInputs& batch) { (void)batch.fill<float>("x"); },
       "program 'step' is run without its batch input 'y'"},
      {"no such input", [](BatchInputs& batch) { (void)batch.fill<float>("ids"); },
       "program 'step' has no batch input 'ids'; it has x, y"},
      {"another type", [](BatchInputs& batch) { (void)batch.fill<std::int32_t>("x"); },
       "batch input 'x' of program 'step' is f32[2,3] and is filled with i32"},
      {"too few elements", [](BatchInputs& batch) { batch.set("x", std::vector<float>(5)); },
       "'x' of program 'step' has 6 elements and is filled with 5"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string what = refusal([&] { executor_.run("step", c.fill); });
    EXPECT_NE(what.find(c.says), std::string::npos) << what;
  }
  EXPECT_NE(refusal([&] { executor_.run("step"); }).find("fill every input for each run"),
            std::string::npos);
}

/// The defect: filled once, run twice.
TEST_F(BatchInputsTest, InputsOfTheRunBeforeAreNotInputsOfThisOne) {
  executor_.run("step", fill_all);
  EXPECT_EQ(executor_.scalar("step", "sum"), 24);
  EXPECT_NE(refusal([&] { executor_.run("step"); }).find("batch input 'x'"), std::string::npos);
  const auto half = [](BatchInputs& batch) { batch.set("x", std::vector<float>(6, 1.0F)); };
  EXPECT_NE(refusal([&] { executor_.run("step", half); }).find("batch input 'y'"),
            std::string::npos);
  executor_.run("step", fill_all);
  EXPECT_EQ(executor_.scalar("step", "sum"), 24);
}

/// Memory of an input that is kept beyond its run holds nothing that could be taken for a number.
TEST_F(BatchInputsTest, AfterARunTheWorkSectionIsNotANumber) {
  std::span<float> kept;
  executor_.run("step", [&](BatchInputs& batch) {
    fill_all(batch);
    kept = batch.fill<float>("y");
  });
  for (const float number : kept) EXPECT_TRUE(std::isnan(number));
  EXPECT_EQ(executor_.scalar("step", "sum"), 24) << "metrics stay until the next run";
}

TEST_F(BatchInputsTest, AnInputThatIsNotWrittenIsNotANumber) {
  executor_.run("step", fill_all);
  executor_.run("step", [](BatchInputs& batch) {
    std::ranges::fill(batch.fill<float>("x"), 1.0F);
    (void)batch.fill<float>("y");
  });
  EXPECT_TRUE(std::isnan(executor_.scalar("step", "sum")));
}

TEST_F(BatchInputsTest, MetricsAreThoseOfTheLastRun) {
  const auto sum = [&] { (void)executor_.scalar("step", "sum"); };
  EXPECT_NE(refusal(sum).find("before any run"), std::string::npos) << refusal(sum);
  executor_.run("step", fill_all);
  executor_.run("other", [](BatchInputs& batch) { batch.set("z", std::vector<float>(6, 3.0F)); });
  EXPECT_NE(refusal(sum).find("metric 'sum' of program 'step' is read after program 'other' ran"),
            std::string::npos)
      << refusal(sum);
  EXPECT_EQ(executor_.metric("other", "double").at(5), 6);
}

TEST_F(BatchInputsTest, PoisonCanBeLeftOut) {
  Executor fast(plan_of(*device_), *device_, nullptr, {.poison = false});
  std::span<float> kept;
  fast.run("step", [&](BatchInputs& batch) {
    fill_all(batch);
    kept = batch.fill<float>("y");
  });
  EXPECT_TRUE(std::ranges::none_of(kept, [](float number) { return std::isnan(number); }));
}

/// Ops read zeros where an index is out of range, and a loss below 0 would be taken for one.
TEST(BatchInputsRange, NumbersThatAProgramLacksAreRefused) {
  std::vector<std::int32_t> numbers = {0, 1, 2, kIgnoredLabel, 0, 0};
  BatchInputs inputs("train");
  inputs.add("labels", {DType::I32, {2, 3}, {}}, std::as_writable_bytes(std::span(numbers)).data(),
             {3, kIgnoredLabel, "labels of a cross_entropy over 3 classes"});
  const auto refusal = [&](std::int32_t number) -> std::string {
    numbers[4] = number;
    inputs.begin();
    (void)inputs.fill<std::int32_t>("labels");
    try {
      inputs.require_filled();
      return "none";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Data);
      return error.what();
    }
  };
  for (const std::int32_t number : {0, 2, kIgnoredLabel}) EXPECT_EQ(refusal(number), "none");
  for (const std::int32_t number : {3, -1, -7, -101, 2'000'000'000})
    EXPECT_EQ(refusal(number),
              text("batch input 'labels' of program 'train' has ", number,
                   " in row 1, at 1; labels of a cross_entropy over 3 classes are from 0 to 2, or "
                   "-100 for none; correct the data, or make what reads it larger"));
}

}  // namespace
}  // namespace tessera
