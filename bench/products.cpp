/// f32 matrix products by each way that this processor has, shape by shape: speed and error.
///
/// The products of a training step as the CPU device makes them, on its own threads, operands where
/// they stay. Ways are timed in turns; a figure is the median of rounds. The error is the largest
/// distance of a sampled element from its sum in f64, over the sum of its terms' magnitudes, in
/// units of 2^-24, the rounding of one f32 number.
///
/// Run:    build/products [--threads N]
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/philox.h"
#include "tessera/device/device.h"
#include "tessera/ops/matmul.h"

namespace {

using namespace tessera;

constexpr int kRounds = 7;
constexpr double kSecondsPerTurn = 0.05;

struct Case {
  const char *name, *rule;
  Shape a, b, c;
};

/// Forward, gradient of the input, gradient of the weights of a linear layer.
std::vector<Case> cases(const char* model, std::int64_t rows, std::int64_t in, std::int64_t out) {
  return {{model, "m k, n k -> m n", {rows, in}, {out, in}, {rows, out}},
          {model, "m n, n k -> m k", {rows, out}, {out, in}, {rows, in}},
          {model, "m n, m k -> n k", {rows, out}, {rows, in}, {out, in}}};
}

struct Operands {
  std::vector<float> a, b, c;
  explicit Operands(const Case& of)
      : a(filled(of.a.numel(), 1)), b(filled(of.b.numel(), 2)), c(filled(of.c.numel(), 3)) {}

  /// Numbers of both signs in [-1, 1).
  static std::vector<float> filled(std::int64_t n, std::uint64_t key) {
    std::vector<float> out(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(static_cast<std::int32_t>(philox_bits(key, i, 0))) * 0x1p-31F;
    }
    return out;
  }
};

/// One product made ready on one device.
class Way {
 public:
  Way(Device& device, const Case& of)
      : types_{{DType::F32, of.a, {}}, {DType::F32, of.b, {}}, {DType::F32, of.c, {}}},
        rule_{std::string(of.rule)},
        kernel_(device.make_kernel({call(), {}, {}, {}, 0})),
        workspace_(static_cast<std::size_t>(kernel_->workspace_bytes() / 64 + 1)) {}

  std::string name() const { return std::string(kernel_->name()); }
  double flops() const { return kMatmul.flops(call()); }
  void run(Operands& on) {
    const void* const ins[] = {on.a.data(), on.b.data()};
    void* const outs[] = {on.c.data()};
    kernel_->run({ins, outs, workspace_.data(), 0});
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  OpCall call() const { return {kMatmul, {&types_[0], &types_[1]}, rule_, {&types_[2]}}; }

  TensorType types_[3];
  Attrs rule_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Line> workspace_;
};

double seconds_per_run(Way& way, Operands& on) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (int runs = 1;; ++runs) {
    way.run(on);
    const std::chrono::duration<double> took = Clock::now() - start;
    if (took.count() >= kSecondsPerTurn) return took.count() / runs;
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Of some elements: the einsum's letters say where its terms lie.
double error_of(const Case& of, const Operands& on) {
  const std::string rule = of.rule;
  const bool a_turned = rule[0] == 'm' && rule.substr(rule.size() - 3) == "n k",
             b_turned = rule.substr(5, 3) == "n k" && rule[2] == 'k';
  const std::int64_t rows = of.c[0], cols = of.c[1], depth = a_turned ? of.a[0] : of.a[1];
  double worst = 0;
  for (std::int64_t i = 0; i < rows; i += 1 + rows / 24) {
    for (std::int64_t j = 0; j < cols; j += 1 + cols / 24) {
      double sum = 0, magnitudes = 0;
      for (std::int64_t l = 0; l < depth; ++l) {
        const std::int64_t at_a = a_turned ? l * of.a[1] + i : i * of.a[1] + l,
                           at_b = b_turned ? j * of.b[1] + l : l * of.b[1] + j;
        const double term = double{on.a[static_cast<std::size_t>(at_a)]} *
                            double{on.b[static_cast<std::size_t>(at_b)]};
        sum += term, magnitudes += std::abs(term);
      }
      const double made = on.c[static_cast<std::size_t>(i * cols + j)];
      worst = std::max(worst, std::abs(made - sum) / magnitudes);
    }
  }
  return std::ldexp(worst, 24);
}

void measure(Device& plain, Device& device, const Case& of) {
  Operands on(of);
  Way ways[] = {{plain, of}, {device, of}};
  std::vector<double> seconds[2], ratios;
  double errors[2];
  for (int i = 0; i < 2; ++i) {
    ways[i].run(on);
    errors[i] = error_of(of, on);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      const int i = (turn + round) % 2;
      seconds[i].push_back(seconds_per_run(ways[i], on));
    }
    ratios.push_back(seconds[0].back() / seconds[1].back());
  }
  const auto gflops = [&](int i) { return ways[i].flops() / median(seconds[i]) * 1e-9; };
  std::printf("| %s | %s | %s %s | %s %.0f | %.2f | %s %.0f | %.2f | %.2f |\n", of.name, of.rule,
              text(of.a).c_str(), text(of.b).c_str(), ways[0].name().c_str(), gflops(0), errors[0],
              ways[1].name().c_str(), gflops(1), errors[1], median(ratios));
  std::fflush(stdout);
}

int threads_of(int argc, char** argv) {
  int threads = 0;
  if (argc == 1) return threads;
  const char* const end = argc == 3 ? argv[2] + std::strlen(argv[2]) : nullptr;
  require(argc == 3 && std::string(argv[1]) == "--threads" &&
              std::from_chars(argv[2], end, threads).ptr == end && threads > 0,
          "usage: products [--threads N]");
  return threads;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int threads = threads_of(argc, argv);
    const std::unique_ptr<Device> plain = make_cpu_device(
                                      {.threads = threads,
                                       .choices = machine_choices().at_most(Isa::Avx512Bf16)}),
                                  device = make_cpu_device({.threads = threads});
    std::printf("%s; GFLOP/s and errors in units of 2^-24\n\n", device->name().c_str());
    std::printf(
        "| model | product | operands | plain | error | device's choice | error | times as fast "
        "|\n");
    std::printf("|---|---|---|---|---|---|---|---|\n");
    for (const auto& layer :
         {cases("nanogpt qkv", 768, 128, 384), cases("nanogpt proj", 768, 128, 128),
          cases("nanogpt up", 768, 128, 512), cases("nanogpt down", 768, 512, 128),
          cases("gpt2-small qkv", 1024, 768, 2304), cases("gpt2-small proj", 1024, 768, 768),
          cases("gpt2-small up", 1024, 768, 3072), cases("gpt2-small down", 1024, 3072, 768)}) {
      for (const Case& of : layer) measure(*plain, *device, of);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "products: %s\n", error.what());
    return 1;
  }
}
