// Rows of channels on their way to attention's scratch, in f32, and back to where results lie,
// compiled once per instruction set: included after hwy/highway.h, inside foreach_target.

#if defined(TESSERA_ATTENTION_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_ATTENTION_ROWS
#undef TESSERA_ATTENTION_ROWS
#else
#define TESSERA_ATTENTION_ROWS
#endif

#include "hwy/cache_control.h"
#include "tessera/device/cpu/attention_call.h"
#include "tessera/device/cpu/vector_load.h"
#include "tessera/device/cpu/vector_math.h"
#include "tessera/gemm/lines_ahead.h"
#include "tessera/gemm/vector_product.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// cap * tanh(x / cap)
HWY_INLINE V capped(V x, float cap) {
  const D d;
  return hn::Mul(hn::Set(d, cap), tanh_of(d, hn::Mul(x, hn::Set(d, 1 / cap))));
}

/// Channels of a row that is read or written as whole vectors.
HWY_INLINE Index padded(Index e) { return (e + 15) / 16 * 16; }

/// So many rows of e channels.
struct Size {
  Index rows, e;
};

/// to = from, in rows that lie `stride` and `to_stride` elements apart; row i multiplied by
/// factors[i * step]; beyond e `fill` channels of a row are zero.
template <typename From, typename To>
HWY_INLINE void scale_rows(const From* from, Index stride, Size size, const float* factors,
                           Index step, To* to, Index to_stride, Index fill) {
  const D d;
  const Index n = lanes(), e = size.e;
  for (Index i = 0; i < size.rows; ++i, from += stride, to += to_stride, factors += step) {
    const V all = hn::Set(d, *factors);
    Index c = 0;
    for (; c + n <= e; c += n) store_vector(d, hn::Mul(load_vector(d, from + c), all), to + c);
    for (; c < e; ++c) store_one(load_one(from + c) * *factors, to + c);
    for (; c < fill; ++c) store_one(0, to + c);
  }
}

constexpr Index kFetchAhead = 8;

/// The same with a factor of 1. Two vectors at a time: where rows miss the caches, what is done
/// between two of them counts; rows lie too far apart for the processor to fetch them by itself.
template <typename From, typename To>
HWY_INLINE void copy_rows(const From* from, Index stride, Size size, To* to, Index to_stride,
                          Index fill) {
  constexpr Index kLine = 64 / sizeof(From);
  const D d;
  const Index n = lanes(), e = size.e;
  for (Index i = 0; i < size.rows; ++i, from += stride, to += to_stride) {
    for (Index c = 0; c < e && i + kFetchAhead < size.rows; c += kLine)
      hwy::Prefetch(from + kFetchAhead * stride + c);
    Index c = 0;
    for (; c + 2 * n <= e; c += 2 * n) {
      const V first = load_vector(d, from + c), second = load_vector(d, from + c + n);
      store_vector(d, first, to + c);
      store_vector(d, second, to + c + n);
    }
    for (; c + n <= e; c += n) store_vector(d, load_vector(d, from + c), to + c);
    for (; c < e; ++c) store_one(load_one(from + c), to + c);
    for (; c < fill; ++c) store_one(0, to + c);
  }
}

/// Operands or results of a call, from an element on: rows at a stride.
template <typename Pointer>
struct Place {
  DType dtype;
  Pointer data;
  Index stride;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};
using Operand = Place<const void*>;
using Result = Place<void*>;

HWY_INLINE Operand operand(const AttentionCall& call, const void* data, Index at, Index stride) {
  return {call.dtype, static_cast<const std::byte*>(data) + at * size_of(call.dtype), stride};
}
HWY_INLINE Result result(const AttentionCall& call, void* data, Index at, Index stride) {
  return {call.dtype, static_cast<std::byte*>(data) + at * size_of(call.dtype), stride};
}

/// To be fetched while products are computed.
template <typename Pointer>
HWY_INLINE void fetch_later(const Place<Pointer>& place, Size size, ListAhead& ahead) {
  constexpr Index kRowsAtOnce = 8;
  const Index bytes = size_of(place.dtype), times = (size.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  if (times > 0)
    ahead.add(LinesAhead(place.data, size.rows, size.e * bytes, place.stride * bytes).over(times));
}

/// Operands to scratch, in rows of padded(e).
inline void read_rows(const Operand& f, Size size, float* to) {
  const Index wide = padded(size.e);
  with_stored(f.dtype, [&](auto zero) HWY_ATTR {
    copy_rows(f.as<const decltype(zero)>(), f.stride, size, to, wide, wide);
  });
}

/// The same, all of them multiplied by `factor`.
inline void read_scaled(const Operand& f, Size size, float factor, float* to) {
  const Index wide = padded(size.e);
  with_stored(f.dtype, [&](auto zero) HWY_ATTR {
    scale_rows(f.as<const decltype(zero)>(), f.stride, size, &factor, 0, to, wide, wide);
  });
}

/// Rows of padded(e) in scratch to results, row i multiplied by factors[i * step] and rounded once.
inline void write_scaled(const float* from, Size size, const float* factors, Index step,
                         const Result& t) {
  with_stored(t.dtype, [&](auto zero) HWY_ATTR {
    scale_rows(from, padded(size.e), size, factors, step, t.as<decltype(zero)>(), t.stride, 0);
  });
}

/// The same with a factor of 1.
inline void write_rows(const float* from, Size size, const Result& t) {
  with_stored(t.dtype, [&](auto zero) HWY_ATTR {
    copy_rows(from, padded(size.e), size, t.as<decltype(zero)>(), t.stride, 0);
  });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
