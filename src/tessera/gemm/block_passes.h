#pragma once
/// The passes of a product over its blocks, the same for every unit that multiplies bf16.

#if defined(__x86_64__) && defined(__linux__)

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/gemm/gemm_blocks.h"
#include "tessera/gemm/gemm_shape.h"
#include "tessera/gemm/sums.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

/// A part of the contraction, which is added to the sums of a block of the result.
struct BlockPass {
  std::int64_t top, left, k;       // where it begins
  std::int64_t rows, cols, along;  // and how much of it there is
  Sums sums;
  char *packed_b, *packed_a;  // room for both, in scratch
};

template <typename Out>
void check_product(const GemmShape& shape, TileUnit unit) {
  check(tile_unit_usable(unit), "a product on a unit that this process may not use");
  check(std::min({shape.m, shape.n, shape.k}) > 0, "a product of nothing");
  check(std::is_same_v<Out, float> || !shape.accumulate, "a product is added to a result of bf16");
}

/// Blocks of these sizes. `bytes(across, along)`: of a packed block. `most_finished`: rows, where
/// the contraction takes several passes: B is packed anew for each lot of rows, but sums should
/// stay in cache from pass to pass.
template <typename Out, typename Bytes>
GemmBlocks blocks_of(const GemmShape& shape, std::int64_t depth, std::int64_t height,
                     std::int64_t width, std::int64_t most_finished, const Bytes& bytes) {
  GemmBlocks out{depth, height, width};
  const std::int64_t cols = std::min(width, shape.n);
  out.b_bytes = bytes(cols, depth);
  out.a_bytes = bytes(std::min(height, shape.m), depth);
  const bool passes = depth < shape.k;
  out.finished = passes ? std::min(most_finished, shape.m) : shape.m;
  if (passes && !std::is_same_v<Out, float>) out.sums = out.finished * round_up(cols, kLanes);
  return out;
}

/// Calls `pass` with every BlockPass, those of one block one after the other.
template <typename Out, typename Pass>
void for_passes(const GemmShape& s, const GemmBlocks& by, Out* c, void* scratch, const Pass& pass) {
  char* const packed_b = static_cast<char*>(scratch);
  char* const packed_a = packed_b + by.b_bytes;
  auto* const kept = reinterpret_cast<float*>(packed_a + by.a_bytes);
  const std::int64_t kept_row = round_up(std::min(by.width, s.n), kLanes);
  for (std::int64_t left = 0; left < s.n; left += by.width) {
    const std::int64_t cols = std::min(by.width, s.n - left);
    for (std::int64_t top = 0; top < s.m; top += by.finished) {
      const std::int64_t rows = std::min(by.finished, s.m - top);
      Out* const result = c + top * s.c_row + left;
      for (std::int64_t k = 0; k < s.k; k += by.depth) {
        Sums sums{kept, kept_row, s.accumulate || k > 0};
        if constexpr (std::is_same_v<Out, float>) {
          sums.at = result, sums.row = s.c_row;
        } else if (k + by.depth >= s.k) {
          sums.rounded = result, sums.rounded_row = s.c_row;
        }
        pass(BlockPass{top, left, k, rows, cols, std::min(by.depth, s.k - k), sums, packed_b,
                       packed_a});
      }
    }
  }
}

}  // namespace tessera::cpu

#endif
