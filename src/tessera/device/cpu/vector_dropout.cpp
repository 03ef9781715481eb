#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/device/cpu/vector_philox.h"
#include "tessera/device/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_dropout.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// y = x / keep where the 24 high bits of a word reach the threshold, else 0.
void drop(const float* x, const std::uint32_t* words, std::int64_t count, std::int32_t threshold,
          float keep, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d), n = static_cast<std::size_t>(count);
  const auto below = hn::Set(di, threshold - 1);
  const auto divisor = hn::Set(d, keep);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + i)));
    const auto kept = hn::RebindMask(d, hn::Gt(bits, below));
    hn::StoreU(hn::IfThenElseZero(kept, hn::Div(hn::LoadU(d, x + i), divisor)), d, y + i);
  }
  for (; i < n; ++i)
    y[i] = static_cast<std::int32_t>(words[i] >> 8) >= threshold ? x[i] / keep : 0.0f;
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(drop);

constexpr std::int64_t kTile = 1024;        // words of one tile lie on the stack: 4 KiB
constexpr std::int64_t kGrain = 8 * kTile;  // elements that are worth a thread

/// Masks are drawn for the index in the whole tensor, a tile at a time, and never stored.
class DropoutKernel final : public Kernel {
 public:
  DropoutKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        shape_(request.call.out(0).shape),
        shard_(out_shard(request, 0)),
        key_(request.key),
        threshold_(keep_threshold(request.call.number("p"))),
        keep_(static_cast<float>(1 - request.call.number("p"))) {
    // Trailing dims that are held whole, and one more, have consecutive indices.
    for (int d = shape_.ndim() - 1; d >= 0; --d) {
      run_ *= shape_[d];
      if (shape_[d] != shard_.global[d]) break;
    }
  }

  std::string_view name() const override { return "hwy:dropout"; }

  void run(const KernelArgs& args) const override {
    const std::uint64_t step =
        static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(args.ins[1]));
    const float* x = static_cast<const float*>(args.ins[0]);
    float* y = static_cast<float*>(args.outs[0]);
    const Shape offset = offset_at(shard_, args.microbatch);
    pool_->split(shape_.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end;) {
        const std::int64_t n = std::min({kTile, end - at, run_ - at % run_});
        tile(x + at, y + at, n, logical_index(at, offset), step);
        at += n;
      }
    });
  }

 private:
  void tile(const float* x, float* y, std::int64_t n, std::int64_t index,
            std::uint64_t step) const {
    alignas(64) std::uint32_t words[kTile + 8];
    const std::int64_t before =
        index % 4;  // words of the first block that belong to elements before
    philox_words(key_, step, static_cast<std::uint64_t>(index / 4), (before + n + 3) / 4, words);
    HWY_DYNAMIC_DISPATCH(drop)(x, words + before, n, threshold_, keep_, y);
  }

  /// Row-major place in the whole tensor of a row-major place in the shard.
  std::int64_t logical_index(std::int64_t at, const Shape& offset) const {
    std::int64_t index = 0, stride = 1;
    for (int d = shape_.ndim() - 1; d >= 0; --d) {
      index += (offset[d] + at % shape_[d]) * stride;
      at /= shape_[d];
      stride *= shard_.global[d];
    }
    return index;
  }

  Pool* pool_;
  Shape shape_;
  ShardInfo shard_;
  std::uint64_t key_;
  std::int32_t threshold_;
  float keep_;
  std::int64_t run_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_dropout(const KernelRequest& request, Pool& pool) {
  if (request.call.in(0).dtype != DType::F32 || !is_dense(request, 0)) return nullptr;
  return std::make_unique<DropoutKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
