#include "tessera/runtime/rates.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/pack.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/runtime/operands.h"

namespace tessera {

namespace {

constexpr std::int64_t kSmallestStream = 128 << 10, kStreamStep = 4;
constexpr double kPatience = 0.06, kFaster = 0.98;

/// Seconds of the fastest run: again until it has not become faster for some time.
/// `most`: not longer than so.
double best_seconds(const Kernel& kernel, std::vector<const void*> ins, std::vector<void*> outs,
                    void* workspace, double most = std::numeric_limits<double>::infinity()) {
  using Clock = std::chrono::steady_clock;
  const auto between = [](Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  };
  const KernelArgs args{ins.data(), outs.data(), workspace, 0};
  double best = std::numeric_limits<double>::infinity(), recent = best;
  const Clock::time_point start = Clock::now();
  Clock::time_point begin = start, improved = start;
  while (between(improved, begin) < kPatience && between(start, begin) < most) {
    kernel.run(args);
    const Clock::time_point end = Clock::now();
    best = std::min(best, between(begin, end));
    if (best < kFaster * recent) recent = best, improved = end;
    begin = end;
  }
  return best;
}

TensorType bytes_of(std::int64_t bytes) { return {DType::I32, {bytes / 4}, {}}; }

double best_product_rate(Device& device, double most) {
  // Large enough for full speed, short enough to fall between the interruptions of a busy machine.
  const TensorType a{DType::F32, {384, 768}, {}}, b{DType::F32, {768, 768}, {}},
      c{DType::F32, {384, 768}, {}};
  const Attrs rule = {std::string("m k, k n -> m n")};
  const OpCall call(kMatmul, {&a, &b}, rule, {&c});
  const auto rate = [&](const OpCall& product, const TensorType& weights) {
    const std::unique_ptr<Kernel> kernel = device.make_kernel({product, {}, {}, {}, 0});
    const Operands memory(device, {a, weights, c, bytes_of(kernel->workspace_bytes())});
    const double seconds =
        best_seconds(*kernel, {memory.at(0), memory.at(1)}, {memory.at(2)}, memory.at(3), most / 2);
    return kMatmul.flops(call) / seconds;
  };
  double best = rate(call, b);
  constexpr std::int64_t kManyUses = 1000;
  if (const std::optional<Layout> layout = device.wanted_layout(call, 1, kManyUses)) {
    const TensorType packed{b.dtype, b.shape, *layout};
    best = std::max(best, rate(OpCall(kMatmul, {&a, &packed}, rule, {&c}), packed));
  }
  return best;
}

/// The better of a sum into an operand, which reads two and writes one, and of a reduction, which
/// only reads.
double stream_rate(Device& device, std::int64_t bytes) {
  const Attrs none;
  const auto rate = [&](const OpDef& op, std::vector<TensorType> ins, const TensorType& out,
                        std::size_t out_at) {
    OpCall::Types types;
    for (const TensorType& in : ins) types.push_back(&in);
    const OpCall call(op, types, none, {&out});
    const std::unique_ptr<Kernel> kernel = device.make_kernel({call, {}, {}, {}, 0});
    std::vector<TensorType> all = ins;
    all.push_back(out);
    all.push_back(bytes_of(kernel->workspace_bytes()));
    const Operands memory(device, all);
    std::vector<const void*> operands;
    for (std::size_t i = 0; i < ins.size(); ++i) operands.push_back(memory.at(i));
    return bytes_moved(call) /
           best_seconds(*kernel, operands, {memory.at(out_at)}, memory.at(ins.size() + 1));
  };
  const TensorType third{DType::F32, {bytes / 3 / 4}, {}}, whole{DType::F32, {bytes / 4}, {}},
      scalar{DType::F32, {}, {}};
  return std::max(rate(kAdd, {third, third}, third, 0), rate(kSumSquares, {whole}, scalar, 1));
}

}  // namespace

double DeviceRates::bytes_per_s(double bytes) const {
  const auto larger = std::find_if(streams.begin() + 1, streams.end(),
                                   [&](const StreamRate& s) { return s.bytes > bytes; });
  return (larger - 1)->bytes_per_s;
}

double DeviceRates::floor_seconds(double flops, double bytes) const {
  return std::max(flops / flops_per_s, bytes / bytes_per_s(bytes));
}

double product_rate(Device& device, double seconds) { return best_product_rate(device, seconds); }

DeviceRates measure_rates(Device& device) {
  DeviceRates out;
  out.flops_per_s = product_rate(device, std::numeric_limits<double>::infinity());
  for (std::int64_t bytes = kSmallestStream;; bytes *= kStreamStep) {
    const std::int64_t size = std::min(bytes, kLargestStream);
    out.streams.push_back({static_cast<double>(size), stream_rate(device, size)});
    if (size == kLargestStream) return out;
  }
}

}  // namespace tessera
