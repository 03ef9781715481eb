#pragma once
/// Counter-based random bits in bulk: base/philox.h, a vector of blocks at a time.

#include <cstdint>

namespace tessera::cpu {

/// The four words of philox(key, b, step) for the `blocks` blocks from `first_block` on, in order:
/// words[4 * blocks]. Word i is that of logical element 4 * first_block + i.
void philox_words(std::uint64_t key, std::uint64_t step, std::uint64_t first_block,
                  std::int64_t blocks, std::uint32_t* words);

/// The least number of 24 bits that is kept: unit_float(bits) >= static_cast<float>(p) exactly
/// where bits >> 8 is at least this.
std::int32_t keep_threshold(double p);

/// How dropout draws its mask.
struct Drawing {
  std::uint64_t key = 0, step = 0;
  std::int32_t threshold = 0;  // keep_threshold
  float keep = 1;              // the part of elements that is kept
};
/// Drops some of `n` numbers at x, the first of which has this index in the whole tensor.
using Drop = void (*)(const Drawing& how, std::uint64_t index, const void* x, std::int64_t n,
                      void* y);

}  // namespace tessera::cpu
