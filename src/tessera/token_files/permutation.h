#pragma once
/// A pseudo-random permutation of [0, n) that is computed point by point: no table, no state.

#include <bit>
#include <cstdint>

#include "tessera/base/philox.h"

namespace tessera {

/// Where `i` goes, 0 <= i < n <= 2^62. Different keys or streams are different permutations.
///
/// A Feistel network permutes the smallest domain of 2^(2h) points that covers n; a result outside
/// [0, n) is permuted again until it falls inside ("cycle walking"; fewer than 4 turns on average,
/// as the domain is below 4n), which leaves a permutation of [0, n). Source: Black and Rogaway
/// 2002, "Ciphers with arbitrary finite domains".
constexpr std::uint64_t permute(std::uint64_t i, std::uint64_t n, std::uint64_t key,
                                std::uint64_t stream) {
  constexpr int kRounds =
      8;  // 4 make a Feistel network strong when halves are wide; ours may be of one bit
  const int half_bits = n <= 1 ? 1 : (std::bit_width(n - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  do {
    std::uint64_t left = i >> half_bits, right = i & mask;
    for (int round = 0; round < kRounds; ++round) {
      const auto block =
          static_cast<std::uint64_t>(round) << 32 | right;  // halves are at most 31 bits
      const std::uint64_t mixed = philox(key, block, stream)[0];
      const std::uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    i = left << half_bits | right;
  } while (i >= n);
  return i;
}

}  // namespace tessera
