#include "tessera/comm/backend/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/tensor/monoid.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera::backend {

namespace {

constexpr std::int64_t kBlockBytes = 4096;  // stays in the first cache

/// How the numbers of a dtype are stored, and what they are combined as.
template <typename T>
struct AsStored {
  using Stored = T;
  using Wide = T;
  static Wide wide(Stored x) { return x; }
};
template <float (*kWide)(std::uint16_t), std::uint16_t (*kNarrow)(float)>
struct InF32 {
  using Stored = std::uint16_t;
  using Wide = float;
  static Wide wide(Stored x) { return kWide(x); }
  static Stored narrow(Wide x) { return kNarrow(x); }
};

/// out[i] = f(xs[i]...) from element `i` on for all whole pieces of the first `n` elements. Their
/// length is a constant, so that the loop over one is vectorized. Nothing overlaps. Returns the
/// first element that is left.
template <std::int64_t kPiece, typename F, typename Out, typename... Xs>
std::int64_t each_piece(std::int64_t i, std::int64_t n, F f, Out* __restrict out,
                        const Xs* __restrict... xs) {
  for (; i + kPiece <= n; i += kPiece) {
    for (std::int64_t j = 0; j < kPiece; ++j) out[i + j] = f(xs[i + j]...);
  }
  return i;
}
/// The same for all `n` elements: rows of what is cut along an inner dim are shorter than a block.
template <std::int64_t kBlock, typename F, typename Out, typename... Xs>
void each(std::int64_t n, F f, Out* out, const Xs*... xs) {
  std::int64_t i = each_piece<kBlock>(0, n, f, out, xs...);
  i = each_piece<16>(i, n, f, out, xs...);
  each_piece<1>(i, n, f, out, xs...);
}

template <typename Number, Monoid kMonoid>
void reduce_as(std::span<const void* const> ins, std::int64_t in_at, std::span<void* const> outs,
               std::int64_t out_at, std::int64_t count) {
  using Stored = typename Number::Stored;
  using Wide = typename Number::Wide;
  constexpr bool kWidens = !std::is_same_v<Stored, Wide>;
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(Wide));
  alignas(64) std::array<Wide, kBlock> acc[2];  // in turns: what is read is not what is written
  alignas(64) std::array<Stored, kWidens ? kBlock : 0> rounded;
  // Lambdas, because through pointers to functions each number would cost a call.
  const auto widen = [](Stored x) { return Number::wide(x); };
  const auto add = [](Wide x, Stored y) { return combine(kMonoid, x, Number::wide(y)); };
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const std::int64_t n = std::min(kBlock, count - i);
    const auto in = [&](std::size_t j) { return static_cast<const Stored*>(ins[j]) + in_at + i; };
    const Wide* sum = acc[0].data();
    if constexpr (kWidens) {
      each<kBlock>(n, widen, acc[0].data(), in(0));
    } else {
      sum = in(0);
    }
    for (std::size_t j = 1; j < ins.size(); ++j) {
      each<kBlock>(n, add, acc[j % 2].data(), sum, in(j));
      sum = acc[j % 2].data();
    }
    const void* result = sum;
    if constexpr (kWidens) {
      const auto narrow = [](Wide x) { return Number::narrow(x); };
      each<kBlock>(n, narrow, rounded.data(), sum);
      result = rounded.data();
    }
    for (void* out : outs)  // that of a single input may be the input
      std::memmove(static_cast<Stored*>(out) + out_at + i, result,
                   static_cast<std::size_t>(n) * sizeof(Stored));
  }
}

}  // namespace

void reduce(DType dtype, Monoid monoid, std::span<const void* const> ins, std::int64_t in_at,
            std::span<void* const> outs, std::int64_t out_at, std::int64_t count) {
  const auto as = [&]<typename Number>(Number) {
    switch (combining(monoid)) {
      case Monoid::Sum: return reduce_as<Number, Monoid::Sum>(ins, in_at, outs, out_at, count);
      case Monoid::Max: return reduce_as<Number, Monoid::Max>(ins, in_at, outs, out_at, count);
      case Monoid::Min: return reduce_as<Number, Monoid::Min>(ins, in_at, outs, out_at, count);
      case Monoid::One: break;  // it combines as a sum
    }
  };
  switch (dtype) {
    case DType::F32: return as(AsStored<float>{});
    case DType::F64: return as(AsStored<double>{});
    case DType::I32: return as(AsStored<std::int32_t>{});
    case DType::I64: return as(AsStored<std::int64_t>{});
    case DType::Bool: return as(AsStored<std::uint8_t>{});
    case DType::BF16: return as(InF32<from_bf16, to_bf16>{});
    case DType::F16: return as(InF32<from_f16, to_f16>{});
  }
}

}  // namespace tessera::backend
