#pragma once
/// Elementwise ops on tiles: short contiguous spans that stay in the first cache. Programs of them
/// are vector_program.h.

#include <cstdint>

#include "tessera/ir/op_def.h"

namespace tessera::cpu {

/// One application: `n` elements of each operand at `in`, results to `out`, which may equal one of
/// `in`.
struct TileCall {
  static constexpr int kMaxIn = 3;
  const void* in[kMaxIn] = {};
  void* out = nullptr;
  std::int64_t n = 0;
  std::int64_t first = 0;  // row-major index of the first element in the program's shape
  std::int64_t microbatch = 0;
  const void* extra = nullptr;  // what the function was made with
};
using TileFunction = void (*)(const TileCall&);

/// The function for an elementwise op on operands of these dtypes; null where there is none.
TileFunction tile_function(const OpCall& call);

/// Those of f32 in Highway; the others are plain loops.
enum class Tile : std::uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Maximum,
  Minimum,
  Negate,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Tanh,
  Erf,
  Abs,
  Sigmoid,
  Relu,
  Silu,
  SiluGrad,
  GeluErf,
  GeluTanh,
  GeluErfGrad,
  GeluTanhGrad,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  IsFinite,
  Select,
};
TileFunction f32_tile(Tile tile);

}  // namespace tessera::cpu
