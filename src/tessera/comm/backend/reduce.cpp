#include "tessera/comm/backend/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/tensor/monoid.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera::backend {

namespace {

constexpr std::int64_t kBlockBytes = 4096;  // stays in the first cache

/// out = x with y. The length of a whole block is a constant and nothing overlaps, so that the loop
/// is vectorized.
template <typename T, Monoid kMonoid>
void combine_all(T* __restrict out, const T* __restrict x, const T* __restrict y, std::int64_t n) {
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  if (n == kBlock) {
    for (std::int64_t i = 0; i < kBlock; ++i) out[i] = combine(kMonoid, x[i], y[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = combine(kMonoid, x[i], y[i]);
  }
}

template <typename T, Monoid kMonoid>
void reduce_as(std::span<const void* const> ins, std::int64_t in_at, std::span<void* const> outs,
               std::int64_t out_at, std::int64_t count) {
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  alignas(64) std::array<T, kBlock> acc[2];  // in turns: what is read is not what is written
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const std::int64_t n = std::min(kBlock, count - i);
    const auto in = [&](std::size_t j) { return static_cast<const T*>(ins[j]) + in_at + i; };
    const T* sum = in(0);
    for (std::size_t j = 1; j < ins.size(); ++j) {
      combine_all<T, kMonoid>(acc[j % 2].data(), sum, in(j), n);
      sum = acc[j % 2].data();
    }
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
    for (void* out : outs)  // that of a single input may be the input
      std::memmove(static_cast<T*>(out) + out_at + i, sum, bytes);
  }
}

/// 16-bit floats are combined in f32, and the result is rounded once.
template <float (*kWide)(std::uint16_t), std::uint16_t (*kNarrow)(float), Monoid kMonoid>
void reduce_16_bit(std::span<const void* const> ins, std::int64_t in_at,
                   std::span<void* const> outs, std::int64_t out_at, std::int64_t count) {
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(float));
  alignas(64) std::array<float, kBlock> wide;
  alignas(64) std::array<std::uint16_t, kBlock> narrow;
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const auto n = static_cast<std::size_t>(std::min(kBlock, count - i));
    const auto in = [&](std::size_t j) {
      return static_cast<const std::uint16_t*>(ins[j]) + in_at + i;
    };
    for (std::size_t e = 0; e < n; ++e) wide[e] = kWide(in(0)[e]);
    for (std::size_t j = 1; j < ins.size(); ++j) {
      for (std::size_t e = 0; e < n; ++e) wide[e] = combine(kMonoid, wide[e], kWide(in(j)[e]));
    }
    for (std::size_t e = 0; e < n; ++e) narrow[e] = kNarrow(wide[e]);
    for (void* out : outs)
      std::memcpy(static_cast<std::uint16_t*>(out) + out_at + i, narrow.data(), 2 * n);
  }
}

}  // namespace

void reduce(DType dtype, Monoid monoid, std::span<const void* const> ins, std::int64_t in_at,
            std::span<void* const> outs, std::int64_t out_at, std::int64_t count) {
  const auto as = [&]<typename T>(T) {
    switch (monoid) {
      case Monoid::Sum: return reduce_as<T, Monoid::Sum>(ins, in_at, outs, out_at, count);
      case Monoid::Max: return reduce_as<T, Monoid::Max>(ins, in_at, outs, out_at, count);
      case Monoid::Min: return reduce_as<T, Monoid::Min>(ins, in_at, outs, out_at, count);
    }
  };
  const auto as_16_bit = [&]<float (*kWide)(std::uint16_t), std::uint16_t (*kNarrow)(float)>() {
    switch (monoid) {
      case Monoid::Sum:
        return reduce_16_bit<kWide, kNarrow, Monoid::Sum>(ins, in_at, outs, out_at, count);
      case Monoid::Max:
        return reduce_16_bit<kWide, kNarrow, Monoid::Max>(ins, in_at, outs, out_at, count);
      case Monoid::Min:
        return reduce_16_bit<kWide, kNarrow, Monoid::Min>(ins, in_at, outs, out_at, count);
    }
  };
  switch (dtype) {
    case DType::F32: return as(float{});
    case DType::F64: return as(double{});
    case DType::I32: return as(std::int32_t{});
    case DType::I64: return as(std::int64_t{});
    case DType::Bool: return as(std::uint8_t{});
    case DType::BF16: return as_16_bit.template operator()<from_bf16, to_bf16>();
    case DType::F16: return as_16_bit.template operator()<from_f16, to_f16>();
  }
}

}  // namespace tessera::backend
