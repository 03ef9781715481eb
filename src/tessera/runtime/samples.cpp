#include "tessera/runtime/samples.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "tessera/base/median.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/operand_floats.h"
#include "tessera/ops/random.h"
#include "tessera/runtime/operands.h"

namespace tessera {

namespace {

using SampleClock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr double kRoundSeconds = 0.005;  // at least: many times what it takes ranks to meet

/// The median of some rounds of many runs, after one that is not counted and says how many those
/// are, the same number on every rank.
double median_seconds(Communicator* world, const std::function<void()>& run) {
  const auto meet = [&] {
    if (world != nullptr) world->run(Collective::barrier("sample"), nullptr, nullptr);
  };
  const auto seconds_of = [&](std::int64_t runs) {
    meet();
    const SampleClock::time_point begin = SampleClock::now();
    for (std::int64_t i = 0; i < runs; ++i) run();
    meet();
    double out = std::chrono::duration<double>(SampleClock::now() - begin).count();
    if (world != nullptr)
      world->run(Collective::all_reduce(DType::F64, {1}, Monoid::Max, "slowest"), &out, &out);
    return out / static_cast<double>(runs);
  };
  seconds_of(1);
  const double first = std::max(seconds_of(2), 1e-9);
  const auto runs = std::max<std::int64_t>(1, std::llround(kRoundSeconds / first));
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) times.push_back(seconds_of(runs));
  return median(std::move(times));
}

/// A kernel with operands of its own.
class SampleKernel {
 public:
  SampleKernel(Device& device, const OpDef& op, const std::vector<TensorType>& ins,
               const TensorTypes& outs, const Attrs& attrs) {
    OpCall::Types types;
    for (const TensorType& in : ins) types.push_back(&in);
    OpCall::Types results;
    for (const TensorType& out : outs) results.push_back(&out);
    const OpCall call(op, types, attrs, results);
    kernel_ = device.make_kernel({call, {}, {}, {}, 0});
    std::vector<TensorType> all = ins;
    all.insert(all.end(), outs.begin(), outs.end());
    all.push_back({DType::I32, {kernel_->workspace_bytes() / 4 + 16}, {}});
    memory_.emplace(device, all);
    for (std::size_t i = 0; i < ins.size(); ++i) read_.push_back(memory_->at(i));
    for (std::size_t i = 0; i < outs.size(); ++i) written_.push_back(memory_->at(ins.size() + i));
    workspace_ = memory_->at(all.size() - 1);
    work_.flops = op.flops == nullptr ? 0 : op.flops(call);
    work_.bytes = bytes_moved(call);
    work_.dtype = operand_floats(call);
    if (op.product == nullptr) return;
    const ProductSize size = op.product(call);
    work_.product = {size.m, size.n, size.k, size.attention};
  }

  const KernelWork& work() const { return work_; }
  void* result() const { return written_[0]; }
  /// The result is written over operand 0 from now on.
  void overwrite() { written_[0] = memory_->at(0); }
  void run() const { kernel_->run({read_.data(), written_.data(), workspace_, 0}); }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::optional<Operands> memory_;
  std::vector<const void*> read_;
  std::vector<void*> written_;
  void* workspace_ = nullptr;
  KernelWork work_;
};

KernelSample time_kernel(const SampleKernel& kernel, Communicator* world) {
  return {kernel.work(), median_seconds(world, [&] { kernel.run(); })};
}

KernelSample time_kernel(Device& device, Communicator* world, const OpDef& op,
                         const std::vector<TensorType>& ins, const TensorTypes& outs,
                         const Attrs& attrs) {
  return time_kernel(SampleKernel(device, op, ins, outs, attrs), world);
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
    out.push_back(time_kernel(device, world, kMatmul, {a, b}, {c}, rule));
  }
  return out;
}

std::vector<KernelSample> time_attention(Device& device, Communicator* world, DType dtype) {
  constexpr std::int64_t kBatch = 2, kHeads = 4;
  std::vector<KernelSample> out;
  for (const std::int64_t tokens : {64, 256}) {
    for (const std::int64_t width : {32, 64}) {
      const TensorType q{dtype, {kBatch, tokens, kHeads, 1, width}, {}},
          k{dtype, {kBatch, tokens, kHeads, width}, {}},
          sums{DType::F32, {kBatch, kHeads, 1, tokens}, {}};
      const Attrs attrs = {true, 1 / std::sqrt(static_cast<double>(width)), 0.0, false,
                           std::string("dropout")};
      out.push_back(time_kernel(device, world, kAttention, {q, k, k}, {q, sums}, attrs));
      out.push_back(
          time_kernel(device, world, kAttentionGrad, {q, q, k, k, q, sums}, {q, k, k}, attrs));
    }
  }
  return out;
}

std::vector<KernelSample> time_streams(Device& device, Communicator* world) {
  std::vector<KernelSample> out;
  for (const std::int64_t elements : {16, 1 << 20, 4 << 20, 8 << 20}) {
    const TensorType type{DType::F32, {elements}, {}};
    // In place, as optimizers work: to write elsewhere, a core first reads what lies there, and
    // those bytes are not counted among the kernel's.
    SampleKernel adds(device, kAdd, {type, type}, {type}, {});
    adds.overwrite();
    out.push_back(time_kernel(adds, world));
    out.back().work.flops = 0;
  }
  return out;
}

std::vector<KernelSample> time_arithmetic(Device& device, Communicator* world, DType dtype) {
  std::vector<KernelSample> out;
  for (const std::int64_t rows : {64, 128, 256}) {
    constexpr std::int64_t kRow = 256;
    const TensorType type{dtype, {rows, kRow}, {}}, weight{dtype, {kRow}, {}},
        statistic{DType::F32, {rows, 1}, {}}, step{DType::I64, {}, {}};
    out.push_back(time_kernel(device, world, kGelu, {type}, {type}, {false}));
    out.push_back(time_kernel(device, world, kGeluGrad, {type, type}, {type}, {false}));
    out.push_back(time_kernel(device, world, kLayerNorm, {type, weight, weight},
                              {type, statistic, statistic}, {1e-5}));
    out.push_back(
        time_kernel(device, world, kDropout, {type, step}, {type}, {0.1, std::string("sample")}));
  }
  return out;
}

std::vector<MoveSample> time_moves(Device& device, Communicator* world) {
  std::vector<MoveSample> out;
  if (world == nullptr) return out;
  for (int n = 2; n <= world->size(); ++n) {
    if (world->size() % n != 0) continue;
    Group group{text("neighbours", n), {}};
    for (int r = 0; r < n; ++r) group.ranks.push_back(world->rank() / n * n + r);
    const std::unique_ptr<Communicator> here = world->join(group);
    for (std::int64_t elements = 256; elements <= 1 << 20; elements *= 8) {
      const TensorType whole{DType::F32, {elements / n * n}, {}};
      const SampleKernel writes(device, kAdd, {whole, whole}, {whole}, {});
      const Operands moved(device, {whole});
      const double alone = median_seconds(world, [&] { writes.run(); });
      for (const Collective& c :
           {Collective::all_reduce(DType::F32, whole.shape, Monoid::Sum, "sample"),
            Collective::all_gather(DType::F32, whole.shape, 0, "sample")}) {
        const bool sums = c.kind == CollectiveKind::AllReduce;
        // What moves was just written by the rank that has it, as between the kernels of a step: no
        // other core has it in a cache.
        const double both = median_seconds(world, [&] {
          writes.run();
          here->run(c, writes.result(), moved.at(0));
        });
        if (both <= alone) continue;  // lost in the noise of the kernel
        out.push_back({n, static_cast<double>(bytes_sent(c, n)),
                       static_cast<double>((sums ? 2 : 1) * steps_among(n)), both - alone});
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
    const double seconds =
        median_seconds(world, [&] { device.wait_copy(device.start_copy(there, here, bytes)); });
    out.push_back({1, static_cast<double>(bytes), 1, seconds});
  }
  device.release(here);
  device.release(there);
  return out;
}

}  // namespace tessera
