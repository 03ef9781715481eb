#include "tessera/device/cpu/vector_tiles.h"

#include <type_traits>

#include "tessera/gemm/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_tiles.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_gelu.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;
using M = hn::Mask<D>;
using Bytes = hn::Rebind<std::uint8_t, D>;  // as many bytes as V has lanes: a bool each

// ---- one vector of each op

/// Ops that take as long as it takes a line to come from a far cache. The processor foresees reads
/// up to the end of a page; loops of these ops fetch a page ahead, so that none waits at the next.
/// Faster ops are held up by the fetching itself.
struct Slow {};
template <class Op>
constexpr bool kIsSlow = std::is_base_of_v<Slow, Op>;

// clang-format off
struct Add { HWY_INLINE V operator()(D, V a, V b) const { return hn::Add(a, b); } };
struct Sub { HWY_INLINE V operator()(D, V a, V b) const { return hn::Sub(a, b); } };
struct Mul { HWY_INLINE V operator()(D, V a, V b) const { return hn::Mul(a, b); } };
struct Div { HWY_INLINE V operator()(D, V a, V b) const { return hn::Div(a, b); } };
struct Maximum { HWY_INLINE V operator()(D, V a, V b) const { return larger(a, b); } };
struct Minimum { HWY_INLINE V operator()(D, V a, V b) const { return smaller(a, b); } };

struct Negate { HWY_INLINE V operator()(D, V x) const { return hn::Neg(x); } };
struct Exp : Slow { HWY_INLINE V operator()(D d, V x) const { return exp_of(d, x); } };
struct Log : Slow { HWY_INLINE V operator()(D d, V x) const { return log_of(d, x); } };
struct Sqrt { HWY_INLINE V operator()(D, V x) const { return hn::Sqrt(x); } };
struct Rsqrt { HWY_INLINE V operator()(D d, V x) const { return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)); } };
struct Tanh : Slow { HWY_INLINE V operator()(D d, V x) const { return tanh_of(d, x); } };
struct Erf : Slow { HWY_INLINE V operator()(D d, V x) const { return erf_of(d, x); } };
struct Abs { HWY_INLINE V operator()(D, V x) const { return hn::Abs(x); } };
struct Sigmoid : Slow { HWY_INLINE V operator()(D d, V x) const { return sigmoid_of(d, x); } };
// clang-format on

struct Relu {
  // NaN stays NaN: what is not below zero passes.
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  }
};
struct Silu : Slow {
  HWY_INLINE V operator()(D d, V x) const { return hn::Mul(x, sigmoid_of(d, x)); }
};
struct SiluGrad : Slow {
  HWY_INLINE V operator()(D d, V x, V dy) const {  // dy * s * (1 + x (1 - s))
    const SigmoidPair<V> s = sigmoid_pair_of(d, x);
    return hn::Mul(hn::Mul(dy, s.open), hn::MulAdd(x, s.closed, hn::Set(d, 1.0f)));
  }
};
template <class Gate>
struct Gelu : Slow {
  Gate gate;
  HWY_INLINE V operator()(D d, V x) const { return hn::Mul(x, gate(d, x)); }
};
template <class Slope>
struct GeluGrad : Slow {
  Slope slope;
  HWY_INLINE V operator()(D d, V x, V dy) const { return hn::Mul(dy, slope(d, x)); }
};

struct Equal {
  HWY_INLINE M operator()(D, V a, V b) const { return hn::Eq(a, b); }
};
struct NotEqual {
  HWY_INLINE M operator()(D, V a, V b) const { return hn::Not(hn::Eq(a, b)); }
};
struct Less {
  HWY_INLINE M operator()(D, V a, V b) const { return hn::Lt(a, b); }
};
struct LessEqual {
  HWY_INLINE M operator()(D, V a, V b) const { return hn::Le(a, b); }
};

// ---- loops over elements of type T, float or a 16-bit float (vector_load.h)

template <typename T>
const T* in(const TileCall& c, int i) {
  return static_cast<const T*>(c.in[i]);
}

/// How far ahead of operand `i` to fetch: not at all where it is a tile of the workspace, which is
/// followed by what another thread writes.
template <typename T>
std::size_t page_ahead(const TileCall& c, int i) {
  return (c.in_memory >> i & 1) != 0 ? 4096 / sizeof(T) : 0;
}

template <class Op, typename T>
HWY_INLINE void fetch([[maybe_unused]] const T* x) {
  if constexpr (kIsSlow<Op>) hwy::Prefetch(x);
}

template <class Op, typename T>
void unary(const TileCall& c) {
  const D d;
  const Op op{};
  const std::size_t n = static_cast<std::size_t>(c.n);
  const T *x = in<T>(c, 0), *x_ahead = x + page_ahead<T>(c, 0);
  T* y = static_cast<T*>(c.out);
  const std::size_t i = store_whole<kIsSlow<Op>>(d, n, y, [&](std::size_t at) HWY_ATTR {
    fetch<Op>(x_ahead + at);
    return op(d, load_vector(d, x + at));
  });
  if (i < n) store_first(d, op(d, load_first(d, x + i, n - i)), y + i, n - i);
}

template <class Op, typename T>
void binary(const TileCall& c) {
  const D d;
  const Op op{};
  const std::size_t n = static_cast<std::size_t>(c.n);
  const T *a = in<T>(c, 0), *b = in<T>(c, 1);
  const T *a_ahead = a + page_ahead<T>(c, 0), *b_ahead = b + page_ahead<T>(c, 1);
  T* y = static_cast<T*>(c.out);
  const std::size_t i = store_whole<kIsSlow<Op>>(d, n, y, [&](std::size_t at) HWY_ATTR {
    fetch<Op>(a_ahead + at), fetch<Op>(b_ahead + at);
    return op(d, load_vector(d, a + at), load_vector(d, b + at));
  });
  if (i < n)
    store_first(d, op(d, load_first(d, a + i, n - i), load_first(d, b + i, n - i)), y + i, n - i);
}

/// A mask as one byte per lane, 0 or 1.
HWY_INLINE hn::VFromD<Bytes> to_bytes(D d, M mask) {
  const hn::RebindToSigned<D> di;
  return hn::DemoteTo(Bytes(), hn::And(hn::BitCast(di, hn::VecFromMask(d, mask)), hn::Set(di, 1)));
}

template <class Op, typename T>
void compare(const TileCall& c) {
  const D d;
  const std::size_t lanes = hn::Lanes(d), n = static_cast<std::size_t>(c.n);
  const T *a = in<T>(c, 0), *b = in<T>(c, 1);
  std::uint8_t* y = static_cast<std::uint8_t*>(c.out);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const M holds = Op()(d, load_vector(d, a + i), load_vector(d, b + i));
    hn::StoreU(to_bytes(d, holds), Bytes(), y + i);
  }
  if (i == n) return;
  const std::size_t rest = n - i;
  const M last = Op()(d, load_first(d, a + i, rest), load_first(d, b + i, rest));
  store_first(Bytes(), to_bytes(d, last), y + i, rest);
}

template <typename T>
void is_finite(const TileCall& c) {
  const D d;
  const std::size_t lanes = hn::Lanes(d), n = static_cast<std::size_t>(c.n);
  const T* x = in<T>(c, 0);
  std::uint8_t* y = static_cast<std::uint8_t*>(c.out);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(to_bytes(d, hn::IsFinite(load_vector(d, x + i))), Bytes(), y + i);
  if (i < n)
    store_first(Bytes(), to_bytes(d, hn::IsFinite(load_first(d, x + i, n - i))), y + i, n - i);
}

HWY_INLINE M to_mask(D d, hn::VFromD<Bytes> condition) {
  const hn::RebindToSigned<D> di;
  const auto wide = hn::PromoteTo(di, condition);
  return hn::RebindMask(d, hn::Ne(wide, hn::Zero(di)));
}

template <typename T>
void select(const TileCall& c) {
  const D d;
  const std::size_t lanes = hn::Lanes(d), n = static_cast<std::size_t>(c.n);
  const std::uint8_t* condition = static_cast<const std::uint8_t*>(c.in[0]);
  const T *a = in<T>(c, 1), *b = in<T>(c, 2);
  T* y = static_cast<T*>(c.out);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const M mask = to_mask(d, hn::LoadU(Bytes(), condition + i));
    store_vector(d, hn::IfThenElse(mask, load_vector(d, a + i), load_vector(d, b + i)), y + i);
  }
  if (i == n) return;
  const std::size_t rest = n - i;
  const M mask = to_mask(d, load_first(Bytes(), condition + i, rest));
  store_first(d, hn::IfThenElse(mask, load_first(d, a + i, rest), load_first(d, b + i, rest)),
              y + i, rest);
}

template <typename T>
void sum_of_rows(const TileCall& c) {
  const D d;
  float* sum = static_cast<float*>(c.out);
  const T *x = in<T>(c, 0), *end = x + c.n;
  each_vector(d, c.row, [&](auto load, auto store) HWY_ATTR {
    V total = load(sum);
    for (const T* row = x; row < end; row += c.row) total = hn::Add(total, load(row));
    store(total, sum);
  });
}

template <typename T>
TileFunction find_of(Tile tile) {
  switch (tile) {
    case Tile::Add: return binary<Add, T>;
    case Tile::Sub: return binary<Sub, T>;
    case Tile::Mul: return binary<Mul, T>;
    case Tile::Div: return binary<Div, T>;
    case Tile::Maximum: return binary<Maximum, T>;
    case Tile::Minimum: return binary<Minimum, T>;
    case Tile::Negate: return unary<Negate, T>;
    case Tile::Exp: return unary<Exp, T>;
    case Tile::Log: return unary<Log, T>;
    case Tile::Sqrt: return unary<Sqrt, T>;
    case Tile::Rsqrt: return unary<Rsqrt, T>;
    case Tile::Tanh: return unary<Tanh, T>;
    case Tile::Erf: return unary<Erf, T>;
    case Tile::Abs: return unary<Abs, T>;
    case Tile::Sigmoid: return unary<Sigmoid, T>;
    case Tile::Relu: return unary<Relu, T>;
    case Tile::Silu: return unary<Silu, T>;
    case Tile::SiluGrad: return binary<SiluGrad, T>;
    case Tile::GeluErf: return unary<Gelu<GeluErfGate<D>>, T>;
    case Tile::GeluTanh: return unary<Gelu<GeluTanhGate<D>>, T>;
    case Tile::GeluErfGrad: return binary<GeluGrad<GeluErfSlope<D>>, T>;
    case Tile::GeluTanhGrad: return binary<GeluGrad<GeluTanhSlope<D>>, T>;
    case Tile::Equal: return compare<Equal, T>;
    case Tile::NotEqual: return compare<NotEqual, T>;
    case Tile::Less: return compare<Less, T>;
    case Tile::LessEqual: return compare<LessEqual, T>;
    case Tile::IsFinite: return is_finite<T>;
    case Tile::Select: return select<T>;
    case Tile::SumOfRows: return sum_of_rows<T>;
  }
  return nullptr;
}

}  // namespace

TileFunction find(Tile tile, DType dtype) {
  return with_stored(dtype, [&](auto zero) { return find_of<decltype(zero)>(tile); });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(find);

TileFunction float_tile(Tile tile, DType dtype) { return HWY_DYNAMIC_DISPATCH(find)(tile, dtype); }

}  // namespace tessera::cpu
#endif
