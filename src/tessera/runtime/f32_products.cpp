#include "tessera/runtime/f32_products.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tessera/ops/matmul.h"
#include "tessera/runtime/operands.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTokens = 512, kWidth = 768, kHidden = 3072;

struct LayerProduct {
  const char* rule;
  Shape a, b, c;
};
/// Forward, the gradient of the input and that of the weight.
const LayerProduct kProducts[] = {
    {"m k, k n -> m n", {kTokens, kWidth}, {kWidth, kHidden}, {kTokens, kHidden}},
    {"m k, n k -> m n", {kTokens, kHidden}, {kWidth, kHidden}, {kTokens, kWidth}},
    {"k m, k n -> m n", {kTokens, kWidth}, {kTokens, kHidden}, {kWidth, kHidden}}};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A product with memory of its own, ready to run.
class Trial {
 public:
  Trial(Device& device, const LayerProduct& product)
      : a_{DType::F32, product.a, {}},
        b_{DType::F32, product.b, {}},
        c_{DType::F32, product.c, {}},
        rule_{std::string(product.rule)},
        call_(kMatmul, {&a_, &b_}, rule_, {&c_}),
        kernel_(device.make_kernel({call_, {}, {}, {}, 0})),
        memory_(device, {a_, b_, c_, {DType::I32, {kernel_->workspace_bytes() / 4}, {}}}) {}

  double seconds() const {
    const void* ins[] = {memory_.at(0), memory_.at(1)};
    void* outs[] = {memory_.at(2)};
    const Clock::time_point begin = Clock::now();
    kernel_->run({ins, outs, memory_.at(3), 0});
    return seconds_since(begin);
  }

 private:
  TensorType a_, b_, c_;
  Attrs rule_;
  OpCall call_;
  std::unique_ptr<Kernel> kernel_;
  Operands memory_;
};

}  // namespace

double measure_amx_speedup(int threads) {
  constexpr int kMostTurns = 9, kLeastTurns = 3;
  constexpr double kMostSeconds = 0.6;
  CpuChoices choices = {Isa::Amx, false, F32Products::Fma};
  const auto fma = make_cpu_device({.threads = threads, .choices = choices});
  choices.f32_products = F32Products::Amx;
  const auto amx = make_cpu_device({.threads = threads, .choices = choices});
  std::vector<std::array<std::unique_ptr<Trial>, 2>> trials;
  for (const LayerProduct& product : kProducts)
    trials.push_back(
        {std::make_unique<Trial>(*fma, product), std::make_unique<Trial>(*amx, product)});
  const auto turn = [&] {
    double by_fma = 0, by_amx = 0;
    for (const auto& [with_fma, with_amx] : trials)
      by_fma += with_fma->seconds(), by_amx += with_amx->seconds();
    return by_fma / by_amx;
  };
  turn();  // makes caches and clocks warm
  std::vector<double> ratios;
  const Clock::time_point begin = Clock::now();
  while (std::ssize(ratios) < kLeastTurns ||
         (std::ssize(ratios) < kMostTurns && seconds_since(begin) < kMostSeconds))
    ratios.push_back(turn());
  const auto middle = ratios.begin() + std::ssize(ratios) / 2;
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

}  // namespace tessera
