#include "tessera/device/cpu/attention.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <string>

#include "tessera/device/cpu/attention_call.h"
#include "tessera/device/cpu/grain.h"
#include "tessera/device/cpu/vector_philox.h"
#include "tessera/ops/attention.h"

namespace tessera::cpu {

namespace {

constexpr std::int64_t kLine = 16;  // floats of a cache line

/// What both kernels share: everything of a call that is known before it runs.
class AttentionKernel : public Kernel {
 public:
  /// `first` is the operand q; k and v follow it; `extras` is the number of operands before mask,
  /// slopes and step. `dots`: bf16 by AVX512-BF16.
  AttentionKernel(const KernelRequest& request, int first, int extras, bool dots, Pool& pool)
      : pool_(pool),
        first_(static_cast<std::size_t>(first)),
        shard_q_(in_shard(request, first)),
        shard_k_(in_shard(request, first + 1)) {
    const OpCall& call = request.call;
    const Shape &q = call.in(first).shape, &k = call.in(first + 1).shape;
    shape_q_ = q, shape_k_ = k;
    fixed_.B = q[0], fixed_.S = q[1], fixed_.G = q[2], fixed_.R = q[3], fixed_.E = q[4],
    fixed_.T = k[1];
    fixed_.dtype = call.in(first).dtype, fixed_.dots = dots;
    fixed_.scale = static_cast<float>(call.number("scale"));
    fixed_.cap = static_cast<float>(call.number_or("cap", 0));
    fixed_.sight = sight_of(call);
    const double dropout = call.number("dropout");
    if (dropout > 0) {
      fixed_.drop_below = keep_threshold(dropout);
      fixed_.keep_scale = 1.0F / static_cast<float>(1 - dropout);
      step_ = call.num_in() - 1;
    }
    if (call.flag("mask")) {
      mask_ = extras;
      const bool of_queries = call.in(extras).ndim() == 3;
      fixed_.mask_s = of_queries ? fixed_.T : 0;
      fixed_.mask_b = of_queries ? fixed_.S * fixed_.T : fixed_.T;
    }
    if (call.flag_or("slopes", false)) slopes_ = extras + call.flag("mask");
    fixed_.key = request.key;
    const auto rows = [&](int i) {
      const Shape s = strides_of(request, i);
      return s.ndim() == 5 ? HeadRows{nullptr, s[0], s[1], s[2], s[3]}
                           : HeadRows{nullptr, s[0], s[1], s[2], 0};
    };
    fixed_.q = rows(first), fixed_.k = rows(first + 1), fixed_.v = rows(first + 2);
    fixed_.global_s = shard_q_.global[1], fixed_.global_g = shard_q_.global[2],
    fixed_.global_r = shard_q_.global[3];
    fixed_.global_t = shard_k_.global[1];
  }

 protected:
  AttentionCall call(const KernelArgs& args) const {
    AttentionCall out = fixed_;
    const Shape at_q = offset_at(shard_q_, args.microbatch),
                at_k = offset_at(shard_k_, args.microbatch);
    const Shape valid_q = valid_at(shard_q_, shape_q_, at_q),
                valid_k = valid_at(shard_k_, shape_k_, at_k);
    out.index_b = at_q[0], out.first_query = at_q[1], out.index_g = at_q[2], out.index_r = at_q[3];
    out.first_key = at_k[1];
    out.valid_s = valid_q[1], out.valid_r = valid_q[3], out.valid_t = valid_k[1];
    out.q.data = args.ins[first_];
    out.k.data = args.ins[first_ + 1];
    out.v.data = args.ins[first_ + 2];
    if (mask_ >= 0) out.mask = static_cast<const bool*>(args.ins[mask_]);
    if (slopes_ >= 0) out.slopes = static_cast<const float*>(args.ins[slopes_]);
    if (step_ >= 0)
      out.step = static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(args.ins[step_]));
    return out;
  }

  Pool& pool() const { return pool_; }
  int threads(double flops) const {
    return static_cast<int>(
        std::clamp(flops / kFlopsPerThread, 1.0, static_cast<double>(pool_.threads())));
  }

  /// Calls task(unit, scratch) for every unit. A thread begins with the units of its own part,
  /// whose rows it has often written itself, then takes what others have left: units differ in
  /// work, and results do not depend on who computes them.
  template <typename Task>
  void each(std::int64_t units, int threads, const KernelArgs& args, std::int64_t scratch_floats,
            const Task& task) const {
    const auto scratch = [&](int thread) {
      return static_cast<float*>(args.workspace) + thread * (kLine + scratch_floats);
    };
    const auto begin = [&](int part) { return units * part / threads; };
    using Next = std::atomic<std::int64_t>;
    const auto next = [&](int part) {
      return std::launder(reinterpret_cast<Next*>(scratch(part)));
    };
    for (int part = 0; part < threads; ++part) new (scratch(part)) Next(begin(part));
    pool_.run(threads, [&](int thread) {
      for (int i = 0; i < threads; ++i) {
        const int part = (thread + i) % threads;
        const std::int64_t end = begin(part + 1);
        for (std::int64_t unit; (unit = next(part)->fetch_add(1, std::memory_order_relaxed)) < end;)
          task(unit, scratch(thread) + kLine);
      }
    });
  }

  static std::int64_t workspace(int threads, std::int64_t scratch_floats) {
    return threads * (kLine + scratch_floats) * std::int64_t{sizeof(float)};
  }

  AttentionCall fixed_;

 private:
  Pool& pool_;
  std::size_t first_;
  ShardInfo shard_q_, shard_k_;
  Shape shape_q_, shape_k_;
  int mask_ = -1, slopes_ = -1, step_ = -1;
};

class Forward final : public AttentionKernel {
 public:
  Forward(const KernelRequest& request, bool dots, Pool& pool)
      : AttentionKernel(request, 0, 3, dots, pool),
        threads_(threads(request.call.op().flops(request.call))),
        scratch_(attention_forward_scratch(fixed_.E)) {}

  std::string_view name() const override {
    return fixed_.dots ? "avx512-bf16:attention" : "hwy:attention";
  }
  std::int64_t workspace_bytes() const override { return workspace(threads_, scratch_); }

  void run(const KernelArgs& args) const override {
    AttentionCall c = call(args);
    c.y = args.outs[0], c.logsumexp = static_cast<float*>(args.outs[1]);
    const std::int64_t tiles = (c.S + kScoreTile - 1) / kScoreTile;
    each(c.B * c.G * c.R * tiles, threads_, args, scratch_, [&](std::int64_t unit, float* scratch) {
      // The last tile of queries sees the most keys: it comes first, so that no thread is left with
      // a long one.
      const std::int64_t tile = tiles - 1 - unit % tiles, head = unit / tiles;
      attention_forward(c, head / (c.R * c.G), head / c.R % c.G, head % c.R, tile * kScoreTile,
                        scratch);
    });
  }

 private:
  int threads_;
  std::int64_t scratch_;
};

/// Of up to kFewQueries queries. Its threads share out heads and chunks of keys.
class FewQueries final : public AttentionKernel {
 public:
  FewQueries(const KernelRequest& request, Pool& pool)
      : AttentionKernel(request, 0, 3, false, pool),
        threads_(threads(request.call.op().flops(request.call))),
        chunks_((fixed_.T + kKeyChunk - 1) / kKeyChunk),
        rows_(fixed_.R * fixed_.S) {}

  std::string_view name() const override { return "hwy:attention_few"; }
  std::int64_t workspace_bytes() const override {
    const std::int64_t parts = fixed_.B * fixed_.G * rows_ * chunks_ * (fixed_.E + 2);
    return workspace(threads_, 0) + parts * std::int64_t{sizeof(float)};
  }

  void run(const KernelArgs& args) const override {
    AttentionCall c = call(args);
    c.y = args.outs[0], c.logsumexp = static_cast<float*>(args.outs[1]);
    const std::int64_t part = c.E + 2, row = chunks_ * part;
    float* const parts =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + workspace(threads_, 0));
    each(c.B * c.G * chunks_, threads_, args, 0, [&](std::int64_t unit, float*) {
      const std::int64_t head = unit / chunks_, chunk = unit % chunks_;
      attention_few(c, head / c.G, head % c.G, chunk, parts + head * rows_ * row + chunk * part,
                    row);
    });
    const std::int64_t all = c.B * c.G * rows_;
    pool().split(all, kRowsPerThread, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) attention_join(c, i, parts + i * row, chunks_);
    });
  }

 private:
  static constexpr std::int64_t kRowsPerThread = 64;  // joined in less time than waking a helper
  int threads_;
  std::int64_t chunks_, rows_;  // rows: of a key-value head
};

class Backward final : public AttentionKernel {
 public:
  Backward(const KernelRequest& request, bool dots, Pool& pool)
      : AttentionKernel(request, 1, 6 + request.call.flag_or("of_logsumexp", false), dots, pool),
        of_logsumexp_(request.call.flag_or("of_logsumexp", false)),
        threads_(static_cast<int>(std::min<std::int64_t>(
            threads(request.call.op().flops(request.call)), fixed_.B * fixed_.G))),
        scratch_(attention_backward_scratch(fixed_.E, fixed_.T, dots)) {}

  std::string_view name() const override {
    return fixed_.dots ? "avx512-bf16:attention_grad" : "hwy:attention_grad";
  }
  std::int64_t workspace_bytes() const override { return workspace(threads_, scratch_); }

  void run(const KernelArgs& args) const override {
    AttentionCall c = call(args);
    c.dy = args.ins[0], c.y_in = args.ins[4];
    c.logsumexp_in = static_cast<const float*>(args.ins[5]);
    if (of_logsumexp_) c.dlogsumexp = static_cast<const float*>(args.ins[6]);
    c.dq = args.outs[0], c.dk = args.outs[1], c.dv = args.outs[2];
    each(c.B * c.G, threads_, args, scratch_, [&](std::int64_t unit, float* scratch) {
      attention_backward(c, unit / c.G, unit % c.G, scratch);
    });
  }

 private:
  bool of_logsumexp_;
  int threads_;
  std::int64_t scratch_;
};

/// f32 or 16 bits, not empty, the channels of q, k and v adjacent, everything else dense.
bool accepts(const KernelRequest& request, int first) {
  const OpCall& call = request.call;
  for (int i = 0; i < call.num_in(); ++i) {
    const bool rows = i >= first && i < first + 3;
    if (rows && (computed_in(call.in(i).dtype) != DType::F32 || call.in(i).numel() == 0))
      return false;
    if (rows ? call.in(i).shape.back() > 1 && strides_of(request, i).back() != 1
             : !is_dense(request, i))
      return false;
  }
  return true;
}

/// bf16 whose channels are pairs.
bool in_pairs(const KernelRequest& request, int first) {
  const TensorType& q = request.call.in(first);
  return q.dtype == DType::BF16 && q.shape.back() % 2 == 0;
}

template <bool dots>
std::unique_ptr<Kernel> make_forward(const KernelRequest& request, Pool& pool) {
  if (!accepts(request, 0) || (dots && !in_pairs(request, 0))) return nullptr;
  const bool few =
      request.call.in(0).shape[1] <= kFewQueries && request.call.number("dropout") == 0;
  if (few) return std::make_unique<FewQueries>(request, pool);
  return std::make_unique<Forward>(request, dots, pool);
}

template <bool dots>
std::unique_ptr<Kernel> make_backward(const KernelRequest& request, Pool& pool) {
  if (!accepts(request, 1) || (dots && !in_pairs(request, 1))) return nullptr;
  return std::make_unique<Backward>(request, dots, pool);
}

constexpr std::array<KernelEntry, 4> kAttentionKernels = {
    {{&kAttention, make_forward<true>, Isa::Avx512Bf16, true},
     {&kAttention, make_forward<false>, Isa::Baseline, true},
     {&kAttentionGrad, make_backward<true>, Isa::Avx512Bf16, true},
     {&kAttentionGrad, make_backward<false>, Isa::Baseline, true}}};

}  // namespace

std::span<const KernelEntry> attention_kernels() { return kAttentionKernels; }

}  // namespace tessera::cpu
