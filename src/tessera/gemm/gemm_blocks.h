#pragma once
/// How products of our own are cut into blocks whose operands lie packed in a core's caches.

#include <cstdint>

#include "tessera/base/round_up.h"

namespace tessera::cpu {

/// The size of n's equal parts that are multiples of `grain` and not much larger than `most`; not
/// larger at all where `grain` divides it.
constexpr std::int64_t equal_part(std::int64_t n, std::int64_t most, std::int64_t grain) {
  const std::int64_t parts = (n + most - 1) / most;
  return round_up((n + parts - 1) / parts, grain);
}

struct GemmBlocks {
  // Of the contraction, of rows of A and of columns of B: what lies packed in scratch at a time.
  std::int64_t depth = 0, height = 0, width = 0;
  std::int64_t finished = 0;  // rows of the result that are finished before the next ones
  // In scratch, one behind the other: packed columns of B, packed rows of A, sums that are to be
  // rounded.
  std::int64_t b_bytes = 0, a_bytes = 0, sums = 0;

  std::int64_t scratch_bytes() const {
    return b_bytes + a_bytes + sums * static_cast<std::int64_t>(sizeof(float));
  }
};

}  // namespace tessera::cpu
