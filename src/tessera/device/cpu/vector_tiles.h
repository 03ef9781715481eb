#pragma once
/// Elementwise ops on tiles: short contiguous spans that stay in the first cache. Programs of them
/// are vector_program.h.

#include <cstdint>
#include <memory>

#include "tessera/ir/op_def.h"

namespace tessera::cpu {

/// One application: `n` elements of each operand at `in`, results to `out`, which may equal one of
/// `in`.
///
/// To an op that works row by row they are n / row rows of `row` elements. An operand that is the
/// same for all rows is one row, a statistic of rows one number for each. Sums over rows are added
/// to what is there. To an optimizer's update, operands without dims are one number each.
struct TileCall {
  static constexpr int kMaxIn = 9, kMaxOut = 3;
  const void* in[kMaxIn] = {};
  void* out = nullptr;           // result 0
  void* more[kMaxOut - 1] = {};  // results 1 and 2
  std::int64_t n = 0, row = 1;
  std::int64_t first = 0;  // row-major index of the first element in the program's shape
  std::int64_t microbatch = 0;
  const void* extra = nullptr;  // what the function was made with
  std::uint32_t in_memory = 0;  // bit i: operand i is read where it lies, and what follows it next
};
using TileFunction = void (*)(const TileCall&);

/// A function and what it is made with.
struct Tiling {
  TileFunction function = nullptr;  // null: there is none
  std::shared_ptr<const void> extra = {};
};

/// The function for an elementwise op on operands of these dtypes; null where there is none. Of 16
/// bits are all floats that it reads and writes, or none.
TileFunction tile_function(const OpCall& call);

/// Those of f32, bf16 and f16 in Highway; the others are plain loops. Those of 16 bits compute in
/// f32 and round each result once; what they sum stays f32.
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
  SumOfRows,
};
TileFunction float_tile(Tile tile, DType dtype);

}  // namespace tessera::cpu
