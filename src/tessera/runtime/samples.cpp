#include "tessera/runtime/samples.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "tessera/base/median.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/runtime/operands.h"

namespace tessera {

namespace {

using SampleClock = std::chrono::steady_clock;

constexpr double kSampleSeconds = 0.03, kGuessedFlops = 3e10, kGuessedBytes = 3e9;

/// As often as about kSampleSeconds take, the same number on every rank.
std::int64_t repetitions(double guessed_seconds) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(kSampleSeconds / guessed_seconds), 5,
                                  200);
}

/// The median of so many runs, that of the slowest rank, after one that is not counted.
double median_seconds(Communicator* world, std::int64_t runs, const std::function<void()>& run) {
  std::vector<double> times;
  for (std::int64_t i = 0; i <= runs; ++i) {
    if (world != nullptr && i % 8 == 0) world->run(Collective::barrier("sample"), nullptr, nullptr);
    const SampleClock::time_point begin = SampleClock::now();
    run();
    if (i > 0) times.push_back(std::chrono::duration<double>(SampleClock::now() - begin).count());
  }

  double out = median(std::move(times));
  if (world != nullptr)
    world->run(Collective::all_reduce(DType::F64, {1}, Monoid::Max, "slowest"), &out, &out);
  return out;
}

/// One kernel on operands of its own.
KernelSample time_kernel(Device& device, Communicator* world, const OpDef& op,
                         const std::vector<TensorType>& ins, const TensorType& out,
                         const Attrs& attrs) {
  OpCall::Types types;
  for (const TensorType& in : ins) types.push_back(&in);
  const OpCall call(op, types, attrs, {&out});
  const std::unique_ptr<Kernel> kernel = device.make_kernel({call, {}, {}, {}, 0});
  std::vector<TensorType> all = ins;
  all.push_back(out);
  all.push_back({DType::I32, {kernel->workspace_bytes() / 4 + 16}, {}});
  const Operands memory(device, all);
  std::vector<const void*> operands;
  for (std::size_t i = 0; i < ins.size(); ++i) operands.push_back(memory.at(i));
  void* const result = memory.at(ins.size());
  const KernelArgs args{operands.data(), &result, memory.at(ins.size() + 1), 0};
  KernelSample sample;
  sample.work.flops = op.flops == nullptr ? 0 : op.flops(call);
  sample.work.bytes = bytes_moved(call);
  if (op.product != nullptr) {
    const ProductSize size = op.product(call);
    sample.work.product = {ins[0].dtype, size.m, size.n, size.k};
  }
  const double guess = sample.work.flops / kGuessedFlops + sample.work.bytes / kGuessedBytes;
  sample.seconds = median_seconds(world, repetitions(guess), [&] { kernel->run(args); });
  return sample;
}

}  // namespace

std::vector<KernelSample> time_products(Device& device, Communicator* world, DType dtype) {
  struct Sizes {
    std::int64_t m, n, k;
  };
  std::vector<Sizes> sizes;
  for (const std::int64_t m : {32, 256, 1024}) {
    for (const std::int64_t n : {64, 256, 1024}) {
      for (const std::int64_t k : {64, 256, 1024}) sizes.push_back({m, n, k});
    }
  }
  sizes.push_back({256, 2048, 512});
  sizes.push_back({512, 512, 2048});
  std::vector<KernelSample> out;
  const Attrs rule = {std::string("m k, k n -> m n")};
  for (const auto& [m, n, k] : sizes) {
    const TensorType a{dtype, {m, k}, {}}, c{dtype, {m, n}, {}};
    TensorType b{dtype, {k, n}, {}};
    constexpr std::int64_t kManyUses = 1000;  // weights lie as the device wants them
    const OpCall plain(kMatmul, {&a, &b}, rule, {&c});
    if (const auto layout = device.wanted_layout(plain, 1, kManyUses)) b.layout = *layout;
    out.push_back(time_kernel(device, world, kMatmul, {a, b}, c, rule));
  }
  return out;
}

std::vector<KernelSample> time_streams(Device& device, Communicator* world) {
  std::vector<KernelSample> out;
  for (const std::int64_t elements : {16, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20}) {
    const TensorType type{DType::F32, {elements}, {}};
    out.push_back(time_kernel(device, world, kAdd, {type, type}, type, {}));
    out.back().work.flops = 0;
  }
  return out;
}

std::vector<KernelSample> time_arithmetic(Device& device, Communicator* world) {
  std::vector<KernelSample> out;
  for (const std::int64_t elements : {16 << 10, 32 << 10, 64 << 10}) {
    const TensorType type{DType::F32, {elements}, {}};
    out.push_back(time_kernel(device, world, kGelu, {type}, type, {true}));
  }
  return out;
}

std::vector<MoveSample> time_moves(Device& device, Communicator* world) {
  std::vector<MoveSample> out;
  if (world == nullptr) return out;
  constexpr std::int64_t kMostElements = 1 << 20;
  const Operands memory(device,
                        {{DType::F32, {kMostElements}, {}}, {DType::F32, {kMostElements}, {}}});
  for (int n = 2; n <= world->size(); ++n) {
    if (world->size() % n != 0) continue;
    Group group{text("neighbours", n), {}};
    for (int r = 0; r < n; ++r) group.ranks.push_back(world->rank() / n * n + r);
    const std::unique_ptr<Communicator> here = world->join(group);
    for (std::int64_t elements = 256; elements <= kMostElements; elements *= 8) {
      const Shape whole{elements / n * n};
      for (const Collective& c : {Collective::all_reduce(DType::F32, whole, Monoid::Sum, "sample"),
                                  Collective::all_gather(DType::F32, whole, 0, "sample")}) {
        const bool sums = c.kind == CollectiveKind::AllReduce;
        MoveSample sample{n, static_cast<double>(bytes_sent(c, n)),
                          static_cast<double>((sums ? 2 : 1) * steps_among(n)), 0};
        sample.seconds = median_seconds(world, repetitions(1e-5 + sample.bytes / kGuessedBytes),
                                        [&] { here->run(c, memory.at(0), memory.at(1)); });
        out.push_back(sample);
      }
    }
  }
  return out;
}

std::vector<MoveSample> time_copies(Device& device, Communicator* world) {
  std::vector<MoveSample> out;
  constexpr std::int64_t kMostBytes = 16 << 20;
  void* const here = device.allocate(Memory::Device, kMostBytes);
  void* const there = device.allocate(Memory::Host, kMostBytes);
  device.expect_copies(1);
  for (std::int64_t bytes = 4 << 10; bytes <= kMostBytes; bytes *= 16) {
    const std::int64_t runs = repetitions(1e-5 + static_cast<double>(bytes) / kGuessedBytes);
    const double seconds = median_seconds(
        world, runs, [&] { device.wait_copy(device.start_copy(there, here, bytes)); });
    out.push_back({1, static_cast<double>(bytes), 1, seconds});
  }
  device.release(here);
  device.release(there);
  return out;
}

}  // namespace tessera
