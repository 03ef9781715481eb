#include <cmath>
#include <limits>
#include <type_traits>

#include "tessera/device/cpu/vector_tiles.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/quotient.h"
#include "tessera/ops/reference.h"
#include "tessera/tensor/monoid.h"

namespace tessera::cpu {

namespace {

// clang-format off
// The scalar functions of dtypes and ops that no Highway tile covers; they say what the reference kernels say.
struct Add { template <typename T> T operator()(T a, T b) const { return a + b; } };
struct Sub { template <typename T> T operator()(T a, T b) const { return a - b; } };
struct Mul { template <typename T> T operator()(T a, T b) const { return a * b; } };
struct Div { template <typename T> T operator()(T a, T b) const { return quotient(a, b); } };
struct Maximum { template <typename T> T operator()(T a, T b) const { return combine(Monoid::Max, a, b); } };
struct Minimum { template <typename T> T operator()(T a, T b) const { return combine(Monoid::Min, a, b); } };
struct Power { template <typename T> T operator()(T a, T b) const { return std::pow(a, b); } };
struct Negate { template <typename T> T operator()(T a) const { return -a; } };
struct Abs { template <typename T> T operator()(T a) const { return std::abs(a); } };
struct Exp { template <typename T> T operator()(T a) const { return std::exp(a); } };
struct Log { template <typename T> T operator()(T a) const { return std::log(a); } };
struct Sqrt { template <typename T> T operator()(T a) const { return std::sqrt(a); } };
struct Rsqrt { template <typename T> T operator()(T a) const { return T(1) / std::sqrt(a); } };
struct Tanh { template <typename T> T operator()(T a) const { return std::tanh(a); } };
struct Erf { template <typename T> T operator()(T a) const { return std::erf(a); } };
struct Cos { template <typename T> T operator()(T a) const { return std::cos(a); } };
struct Sigmoid { template <typename T> T operator()(T a) const { return T(1) / (T(1) + std::exp(-a)); } };
struct Equal { template <typename T> bool operator()(T a, T b) const { return a == b; } };
struct NotEqual { template <typename T> bool operator()(T a, T b) const { return a != b; } };
struct Less { template <typename T> bool operator()(T a, T b) const { return a < b; } };
struct LessEqual { template <typename T> bool operator()(T a, T b) const { return a <= b; } };
struct And { template <typename T> bool operator()(T a, T b) const { return a && b; } };
struct Or { template <typename T> bool operator()(T a, T b) const { return a || b; } };
struct Not { template <typename T> bool operator()(T a) const { return !a; } };
struct IsFinite { template <typename T> bool operator()(T a) const { return std::isfinite(a); } };
// clang-format on

template <typename F, typename T>
void unary(const TileCall& c) {
  using R = std::invoke_result_t<F, T>;
  const T* x = static_cast<const T*>(c.in[0]);
  R* y = static_cast<R*>(c.out);
  for (std::int64_t i = 0; i < c.n; ++i) y[i] = F{}(x[i]);
}

template <typename F, typename T>
void binary(const TileCall& c) {
  using R = std::invoke_result_t<F, T, T>;
  const T *a = static_cast<const T*>(c.in[0]), *b = static_cast<const T*>(c.in[1]);
  R* y = static_cast<R*>(c.out);
  for (std::int64_t i = 0; i < c.n; ++i) y[i] = F{}(a[i], b[i]);
}

template <typename T>
void select(const TileCall& c) {
  const bool* condition = static_cast<const bool*>(c.in[0]);
  const T *a = static_cast<const T*>(c.in[1]), *b = static_cast<const T*>(c.in[2]);
  T* y = static_cast<T*>(c.out);
  for (std::int64_t i = 0; i < c.n; ++i) y[i] = condition[i] ? a[i] : b[i];
}

/// Floats are truncated; beyond the range of an integer they saturate, and NaN becomes 0.
template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return 0;
    if (static_cast<double>(x) <= static_cast<double>(Limits::min())) return Limits::min();
    if (static_cast<double>(x) >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void cast(const TileCall& c) {
  const From* x = static_cast<const From*>(c.in[0]);
  To* y = static_cast<To*>(c.out);
  for (std::int64_t i = 0; i < c.n; ++i) y[i] = convert<To>(x[i]);
}

bool computes(DType d) {
  return d == DType::F32 || d == DType::F64 || d == DType::I32 || d == DType::I64 ||
         d == DType::Bool;
}

TileFunction cast_tile(DType from, DType to) {
  if (!computes(from) || !computes(to)) return nullptr;
  TileFunction out = nullptr;
  with_element(from, [&](auto a) {
    with_element(to, [&](auto b) { out = cast<decltype(a), decltype(b)>; });
  });
  return out;
}

bool has_float_tiles(DType dtype) { return dtype == DType::F32 || is_16_bit(dtype); }

TileFunction select_tile(DType dtype) {
  if (has_float_tiles(dtype)) return float_tile(Tile::Select, dtype);
  if (!computes(dtype)) return nullptr;
  TileFunction out = nullptr;
  with_element(dtype, [&](auto zero) { out = select<decltype(zero)>; });
  return out;
}

/// The functions of one op by the dtype of its operands.
struct Row {
  const OpDef* op;
  int float_tile;  // of f32 and 16 bits; -1: `f32`, and none
  TileFunction f32 = nullptr, f64 = nullptr, i32 = nullptr, i64 = nullptr, boolean = nullptr;
};
constexpr int id(Tile tile) { return static_cast<int>(tile); }

using I32 = std::int32_t;
using I64 = std::int64_t;

template <typename F>
constexpr Row numbers(const OpDef& op, Tile tile) {
  return {&op, id(tile), nullptr, binary<F, double>, binary<F, I32>, binary<F, I64>, nullptr};
}
template <typename F>
constexpr Row sizes(const OpDef& op, Tile tile) {
  return {&op, id(tile), nullptr, unary<F, double>, unary<F, I32>, unary<F, I64>, nullptr};
}
template <typename F>
constexpr Row floats(const OpDef& op, Tile tile) {
  return {&op, id(tile), nullptr, unary<F, double>};
}
constexpr Row only_tile(const OpDef& op, Tile tile) { return {&op, id(tile)}; }

constinit const Row kPlainRows[] = {
    numbers<Add>(kAdd, Tile::Add),
    numbers<Sub>(kSub, Tile::Sub),
    numbers<Mul>(kMul, Tile::Mul),
    numbers<Div>(kDiv, Tile::Div),
    numbers<Maximum>(kMaximum, Tile::Maximum),
    numbers<Minimum>(kMinimum, Tile::Minimum),
    numbers<Equal>(kEqual, Tile::Equal),
    numbers<NotEqual>(kNotEqual, Tile::NotEqual),
    numbers<Less>(kLess, Tile::Less),
    numbers<LessEqual>(kLessEqual, Tile::LessEqual),
    sizes<Negate>(kNegate, Tile::Negate),
    sizes<Abs>(kAbs, Tile::Abs),
    floats<Exp>(kExp, Tile::Exp),
    floats<Log>(kLog, Tile::Log),
    floats<Sqrt>(kSqrt, Tile::Sqrt),
    floats<Rsqrt>(kRsqrt, Tile::Rsqrt),
    floats<Tanh>(kTanh, Tile::Tanh),
    floats<Erf>(kErf, Tile::Erf),
    floats<Sigmoid>(kSigmoid, Tile::Sigmoid),
    floats<IsFinite>(kIsFinite, Tile::IsFinite),
    only_tile(kRelu, Tile::Relu),
    only_tile(kSilu, Tile::Silu),
    only_tile(kSiluGrad, Tile::SiluGrad),
    {&kCos, -1, unary<Cos, float>, unary<Cos, double>},
    {&kPower, -1, binary<Power, float>, binary<Power, double>},
    {&kLogicalAnd, -1, nullptr, nullptr, nullptr, nullptr, binary<And, bool>},
    {&kLogicalOr, -1, nullptr, nullptr, nullptr, nullptr, binary<Or, bool>},
    {&kLogicalNot, -1, nullptr, nullptr, nullptr, nullptr, unary<Not, bool>},
};

/// False where an f32 stands beside 16-bit floats.
bool has_one_float(const OpCall& call) {
  const TensorType* first = nullptr;
  const auto agrees = [&](const TensorType& type) {
    if (!is_float(type.dtype)) return true;
    if (first == nullptr) first = &type;
    return first->dtype == type.dtype;
  };
  bool all = true;
  for (int i = 0; i < call.num_in(); ++i) all = all && agrees(call.in(i));
  for (int i = 0; i < call.num_out(); ++i) all = all && agrees(call.out(i));
  return all;
}

}  // namespace

TileFunction tile_function(const OpCall& call) {
  const OpDef* op = &call.op();
  const DType dtype = call.in(0).dtype;
  if (op == &kCast) return cast_tile(dtype, call.out(0).dtype);
  if (!has_one_float(call)) return nullptr;
  if (op == &kSelect) return select_tile(call.in(1).dtype);
  if (op == &kGelu || op == &kGeluGrad) {
    if (!has_float_tiles(dtype)) return nullptr;
    const bool tanh = call.flag("tanh");
    if (op == &kGelu) return float_tile(tanh ? Tile::GeluTanh : Tile::GeluErf, dtype);
    return float_tile(tanh ? Tile::GeluTanhGrad : Tile::GeluErfGrad, dtype);
  }
  for (const Row& row : kPlainRows) {
    if (row.op != op) continue;
    if (row.float_tile >= 0 && has_float_tiles(dtype))
      return float_tile(static_cast<Tile>(row.float_tile), dtype);
    switch (dtype) {
      case DType::F32: return row.f32;
      case DType::F64: return row.f64;
      case DType::I32: return row.i32;
      case DType::I64: return row.i64;
      case DType::Bool: return row.boolean;
      default: return nullptr;
    }
  }
  return nullptr;
}

}  // namespace tessera::cpu
