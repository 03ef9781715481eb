#pragma once
/// Copies between strided tensors of one shape: what reshape, transpose, slices and joins come down
/// to.

#include <cstddef>

#include "tessera/device/cpu/pool.h"
#include "tessera/tensor/shape.h"

namespace tessera::cpu {

class StridedCopy {
 public:
  StridedCopy() = default;
  /// Strides in elements of `element_bytes`.
  StridedCopy(const Shape& shape, const Shape& from, const Shape& to, int element_bytes);
  void run(const std::byte* from, std::byte* to, Pool& pool) const;

 private:
  void copy_runs(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end) const;
  template <typename T>
  void transpose(const T* from, T* to, std::int64_t columns) const;
  template <typename T>
  void copy_blocks(const std::byte* from, std::byte* to, std::int64_t begin,
                   std::int64_t end) const;
  template <typename Visit>
  void each_outer(std::int64_t begin, std::int64_t end, const Visit& visit) const;

  // outer_ x [rows_] x columns_; where rows_ is not 1 it is the dim along which `from` is
  // contiguous.
  Shape outer_, outer_from_, outer_to_;
  std::int64_t rows_ = 1, row_from_ = 0, row_to_ = 0;
  std::int64_t columns_ = 0, column_from_ = 1, column_to_ = 1;
  int size_ = 4;
};

}  // namespace tessera::cpu
