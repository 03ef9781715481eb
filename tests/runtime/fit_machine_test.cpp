/// Machines that are known are found again from the times that they give.

#include "tessera/runtime/fit_machine.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

DeviceSpeed known_device() {
  DeviceSpeed out;
  out.start_microseconds = 3;
  out.memory_gigabytes_per_s = 12;
  out.other_gigaflops_per_s = 25;
  out.f32 = {80, 40, 20, 60};
  return out;
}

std::vector<KernelSample> timed(std::vector<KernelWork> works) {
  Machine machine;
  machine.device = known_device();
  std::vector<KernelSample> out;
  for (const KernelWork& work : works) out.push_back({work, machine.kernel_seconds(work)});
  return out;
}

TEST(FitMachine, OfDevices) {
  std::vector<KernelWork> streams, products;
  for (double bytes = 1e3; bytes < 1e8; bytes *= 4) streams.push_back({0, bytes});
  for (const double m : {32, 256, 1024}) {
    for (const double n : {64, 256, 1024}) {
      for (const double k : {64, 256, 1024})
        products.push_back({2 * m * n * k, 1, DType::F32, KernelWork::Product{m, n, k}});
    }
  }
  DeviceSpeed found;
  fit_streams(timed(streams), timed({{1e7, 1}, {1e8, 1}}), found);
  EXPECT_NEAR(found.start_microseconds, 3, 0.03);
  EXPECT_NEAR(found.memory_gigabytes_per_s, 12, 0.1);
  EXPECT_NEAR(found.other_gigaflops_per_s, 25, 0.25);
  std::vector<KernelSample> samples = timed(products);
  samples[13].seconds *= 20;  // something else ran then
  const FloatSpeed speed = fit_products(samples, known_device());
  EXPECT_NEAR(speed.gigaflops_per_s, 80, 4);
  EXPECT_NEAR(speed.half_m, 40, 6);
  EXPECT_NEAR(speed.half_n, 20, 6);
  EXPECT_NEAR(speed.half_k, 60, 6);
}

TEST(FitMachine, OfAttentionAndSixteenBits) {
  DeviceSpeed known = known_device();
  known.bf16 = {160, 0, 0, 0, 0.4, 0.7};
  Machine machine;
  machine.device = known;
  std::vector<KernelSample> attention, others;
  for (const double tokens : {64, 256, 1024}) {
    const KernelWork work{1e3 * tokens * tokens, 1, DType::BF16,
                          KernelWork::Product{tokens, tokens, 64, true}};
    attention.push_back({work, machine.kernel_seconds(work)});
    const KernelWork other{1e5 * tokens, 1, DType::BF16};
    others.push_back({other, machine.kernel_seconds(other)});
  }
  known.bf16.attention = known.bf16.others = 1;
  EXPECT_NEAR(fit_attention(attention, known), 0.4, 0.005);
  EXPECT_NEAR(fit_others(others, known), 0.7, 0.01);
}

TEST(FitMachine, OfLinks) {
  std::vector<MoveSample> samples;
  for (const double steps : {1, 2, 4}) {
    for (double bytes = 1e3; bytes < 1e7; bytes *= 8)
      samples.push_back({2, bytes, steps, bytes / 6e9 + steps * 4e-6});
  }
  const LinkSpeed link = fit_link(samples, {1, 1, 8, 2});
  EXPECT_NEAR(link.gigabytes_per_s, 6, 0.05);
  EXPECT_NEAR(link.microseconds, 4, 0.05);
  EXPECT_EQ(link.units, 8);
  EXPECT_EQ(fit_link({}, {7, 1}), (LinkSpeed{7, 1}));
}

TEST(FitMachine, WeightsOfSteps) {
  std::vector<StepSample> steps;
  for (int i = 0; i < 8; ++i) {
    StepSample step;
    const double products = 1 + i % 3, inner = 0.2 * (i % 2), data = 0.1 * (i % 5);
    step.exposed[static_cast<std::size_t>(TimePart::Products)] = products;
    step.exposed[static_cast<std::size_t>(TimePart::Inner)] = inner;
    step.exposed[static_cast<std::size_t>(TimePart::Data)] = data;
    step.seconds = 1.5 * products + 2 * inner;
    steps.push_back(step);
  }
  const CostWeights weights = fit_weights(steps);
  EXPECT_NEAR(weights.alpha, 1.5, 0.05);
  EXPECT_NEAR(weights.beta1, 2, 0.25) << "drawn to 1, as it is a tenth of half of the steps";
  EXPECT_EQ(weights.beta2, 1) << "no step has any";
  EXPECT_GT(weights.gamma, 0);
  EXPECT_LT(weights.gamma, 0.3) << "no step is longer for it";
  for (StepSample& step : steps) step.exposed[static_cast<std::size_t>(TimePart::Data)] *= 1e-3;
  EXPECT_NEAR(fit_weights(steps).gamma, 1, 0.1) << "too small a part to say anything";
}

}  // namespace
}  // namespace tessera
