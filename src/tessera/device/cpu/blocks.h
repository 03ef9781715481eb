#pragma once
/// A call that is computed block by block, along one factor of its rule: each block is a call of
/// the same op on windows of the operands, as a shard is on another rank.

#include <cstdint>
#include <vector>

#include "tessera/device/device.h"

namespace tessera::cpu {

struct Blocks {
  std::int64_t size = 1, length = 1;  // of the factor, and of a block; the last may be shorter
  /// Per operand, per result: the dim that is cut; -1: none. Such a result is the sum of those of
  /// all blocks.
  std::vector<int> ins, outs;

  std::int64_t count() const { return (size + length - 1) / length; }
  TensorType of(TensorType type, int dim, std::int64_t n) const {
    if (dim >= 0) type.shape[dim] = n;
    return type;
  }
};

/// True where a block along `dim` (-1: not cut) is one dense piece of a value at these strides.
bool is_window(const TensorType& type, const Shape& strides, int dim);

/// Blocks of a call whose 16-bit operands and results, in f32, need more than `bytes` together:
/// along the factor that leaves the fewest bytes, in blocks of about `bytes`. One block where it
/// needs no more, or where no factor can be cut: numbers that depend on where an element lies
/// (random ones, or rows that ids name) are not cut there.
Blocks blocks_of(const KernelRequest& request, std::int64_t bytes);

}  // namespace tessera::cpu
