#pragma once
/// The arguments of a reference kernel: plain loops over one rank's shard.

#include <cstdint>
#include <span>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/ir/op_def.h"

namespace tessera {

/// One operand or result as one rank stores it: dense, row-major.
struct RefOperand {
  TensorType type;  // the local (padded) shape; floats have the dtype that is computed in
  void* data = nullptr;
  Shape offset;  // logical index of the first element, per dim
  Shape valid;   // elements inside the logical extent, per dim; content beyond is undefined
  Shape global;  // logical extents
};

class RefCall {
 public:
  RefCall(const OpCall& call, std::span<RefOperand> ins, std::span<RefOperand> outs,
          std::uint64_t key)
      : call(call), ins(ins), outs(outs), key(key) {}

  const OpCall& call;
  std::span<RefOperand> ins, outs;
  std::uint64_t key;            // of a random op: XXH3(seed, its key path); 0 for others
  std::uint64_t seed = 1;       // of random ops inside a body
  std::int64_t coordinate = 0;  // of this rank along the attribute `axes`, where there is one

  int num_in() const { return static_cast<int>(ins.size()); }
  template <typename T>
  const T* in(int i) const {
    return typed<T>(ins[static_cast<std::size_t>(i)]);
  }
  template <typename T>
  T* out(int i) const {
    return typed<T>(outs[static_cast<std::size_t>(i)]);
  }
  const Shape& in_shape(int i) const { return ins[static_cast<std::size_t>(i)].type.shape; }
  const Shape& out_shape(int i) const { return outs[static_cast<std::size_t>(i)].type.shape; }

 private:
  template <typename T>
  T* typed(const RefOperand& operand) const {
    check(dtype_of<T>() == operand.type.dtype, call.op().name, ": a ", operand.type, " is read as ",
          to_text(dtype_of<T>()));
    return static_cast<T*>(operand.data);
  }
};

/// Calls `f` with a value of the C++ type of `dtype`: `with_element(d, [&](auto zero) { using T =
/// decltype(zero); ... })`.
template <typename F>
void with_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F32: return f(float{});
    case DType::F64: return f(double{});
    case DType::I32: return f(std::int32_t{});
    case DType::I64: return f(std::int64_t{});
    case DType::Bool: return f(bool{});
    default:
      fail(Fault::Usage, "no kernel computes in ", to_text(dtype), " yet; cast to f32 first");
  }
}

/// As with_element, for the dtypes one can calculate with: bool is refused.
template <typename F>
void with_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F32: return f(float{});
    case DType::F64: return f(double{});
    case DType::I32: return f(std::int32_t{});
    case DType::I64: return f(std::int64_t{});
    default: fail(Fault::Usage, "no kernel calculates in ", to_text(dtype), "; cast to f32 first");
  }
}

/// Visits every index of `shape` in row-major order: f(index, linear).
template <typename F>
void for_each_index(const Shape& shape, F&& f) {
  Shape at = Shape::of(shape.ndim(), 0);
  const std::int64_t n = shape.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    f(static_cast<const Shape&>(at), i);
    for (int d = shape.ndim() - 1; d >= 0; --d) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

/// Element offset of `at` under `strides`, aligned at the last dim; dims of size 1 in `shape` are
/// broadcast.
inline std::int64_t broadcast_offset(const Shape& at, const Shape& shape, const Shape& strides) {
  std::int64_t offset = 0;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape.back(i) != 1) offset += at.back(i) * strides.back(i);
  }
  return offset;
}

/// Row-major position of a local index in the whole tensor: what counter-based random numbers are
/// drawn for.
inline std::int64_t logical_index(const Shape& at, const RefOperand& operand) {
  std::int64_t index = 0;
  for (int d = 0; d < at.ndim(); ++d) index = index * operand.global[d] + operand.offset[d] + at[d];
  return index;
}

}  // namespace tessera
