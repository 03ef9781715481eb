#include <algorithm>
#include <cstddef>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_philox.h"
#include "tessera/gemm/vector_targets.h"
#include "tessera/ops/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_dropout.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"
#include "tessera/device/cpu/vector_philox_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace {

/// y = x / keep where the 24 high bits of a word reach the threshold, else 0.
template <typename T>
HWY_INLINE void drop_some(const Drawing& how, const T* x, const std::uint32_t* words, std::size_t n,
                          T* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d);
  const auto below = hn::Set(di, how.threshold - 1);
  const auto divisor = hn::Set(d, how.keep);
  const auto some = [&](auto random, auto v) HWY_ATTR {
    const auto bits = hn::BitCast(di, hn::ShiftRight<8>(random));
    const auto kept = hn::RebindMask(d, hn::Gt(bits, below));
    return hn::IfThenElseZero(kept, hn::Div(v, divisor));
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    store_vector(d, some(hn::LoadU(du, words + i), load_vector(d, x + i)), y + i);
  if (i == n) return;
  const auto rest = some(load_first(du, words + i, n - i), load_first(d, x + i, n - i));
  store_first(d, rest, y + i, n - i);
}

/// Of `n` elements, the first of which has this index in the whole tensor. Words are drawn for a
/// few vectors at a time: while some are mixed, the processor divides and stores those before.
template <typename T>
void drop_run(const Drawing& how, std::uint64_t index, const T* x, std::int64_t n, T* y) {
  const PhiloxBlocks blocks(how.key, how.step);
  HWY_ALIGN std::uint32_t words[4 * PhiloxBlocks::kMost];
  std::uint64_t block = index / 4;
  // The first block may have words of elements before the first one.
  for (std::int64_t i = -static_cast<std::int64_t>(index % 4); i < n;) {
    const bool many = n - i >= 4 * PhiloxBlocks::many();
    const std::int64_t made = many ? PhiloxBlocks::many() : PhiloxBlocks::few();
    if (many) {
      blocks.many_words(block, words);
    } else {
      blocks.few_words(block, words);
    }
    const std::int64_t begin = std::max<std::int64_t>(i, 0), end = std::min(i + 4 * made, n);
    drop_some(how, x + begin, words + (begin - i), static_cast<std::size_t>(end - begin),
              y + begin);
    i += 4 * made;
    block += static_cast<std::uint64_t>(made);
  }
}

template <typename T>
void drop_of(const Drawing& how, std::uint64_t index, const void* x, std::int64_t n, void* y) {
  drop_run(how, index, static_cast<const T*>(x), n, static_cast<T*>(y));
}

}  // namespace

Drop find_drop(DType dtype) {
  return with_stored(dtype, [](auto zero) -> Drop { return drop_of<decltype(zero)>; });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(find_drop);

/// Masks are drawn for the index in the whole tensor and never stored.
class Dropout {
 public:
  Dropout(const OpCall& call, std::uint64_t key, ShardInfo shard)
      : drop_(HWY_DYNAMIC_DISPATCH(find_drop)(call.in(0).dtype)),
        size_(size_of(call.in(0).dtype)),
        shape_(call.out(0).shape),
        shard_(std::move(shard)),
        how_{.key = key,
             .threshold = keep_threshold(call.number("p")),
             .keep = static_cast<float>(1 - call.number("p"))} {
    // Trailing dims that are held whole, and one more, have consecutive indices.
    for (int d = shape_.ndim() - 1; d >= 0; --d) {
      run_ *= shape_[d];
      if (shape_[d] != shard_.global[d]) break;
    }
  }

  /// The elements from `first` to `end` of the shard, row-major; x and y are those of `first`.
  void run(const std::byte* x, std::byte* y, std::int64_t first, std::int64_t end,
           std::uint64_t step, std::int64_t microbatch) const {
    Drawing how = how_;
    how.step = step;
    const Shape offset = offset_at(shard_, microbatch);
    for (std::int64_t at = first; at < end;) {
      const std::int64_t n = std::min(end - at, run_ - at % run_);
      const auto index = static_cast<std::uint64_t>(logical_index(at, offset));
      drop_(how, index, x + (at - first) * size_, n, y + (at - first) * size_);
      at += n;
    }
  }

 private:
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

  Drop drop_;
  std::int64_t size_;  // of an element, in bytes
  Shape shape_;
  ShardInfo shard_;
  Drawing how_;
  std::int64_t run_ = 1;
};

std::uint64_t step_at(const void* step) {
  return static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(step));
}

}  // namespace

Tiling dropout_tiling(const OpCall& call, std::uint64_t key, const ShardInfo& shard) {
  if (&call.op() != &kDropout || HWY_DYNAMIC_DISPATCH(find_drop)(call.in(0).dtype) == nullptr)
    return {};
  const auto function = [](const TileCall& c) {
    static_cast<const Dropout*>(c.extra)->run(static_cast<const std::byte*>(c.in[0]),
                                              static_cast<std::byte*>(c.out), c.first,
                                              c.first + c.n, step_at(c.in[1]), c.microbatch);
  };
  return {function, std::make_shared<const Dropout>(call, key, shard)};
}

}  // namespace tessera::cpu
#endif
