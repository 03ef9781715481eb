#include "tessera/gemm/dot_pack.h"

#if defined(__x86_64__) && defined(__linux__)

#include <algorithm>

#include "tessera/gemm/dot_pairs.h"
#include "tessera/gemm/intrinsics.h"
#include "tessera/gemm/tile_unit.h"
#include "tessera/gemm/transpose.h"

namespace tessera::cpu {

namespace {

__mmask32 first_of_32(std::int64_t n) {
  return static_cast<__mmask32>((std::uint64_t{1} << std::clamp<std::int64_t>(n, 0, 32)) - 1);
}

void ask_for(const Bf16* at) { __builtin_prefetch(at, 0, 3); }

/// Rows of the source lie along the panels: of each two that make pairs, from beginning to end.
TESSERA_TILES void pack_rows(const PairSource& from, std::int64_t across, std::int64_t along,
                             char* to) {
  const std::int64_t pairs = round_up(along, 2 * kLanes) / 2;
  constexpr std::int64_t kLine = 32, kShort = 16 * kLine, kAhead = 32;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const Bf16 *const even = from.data + 2 * pair * from.along, *const odd = even + from.along;
    // The processor foresees what is next to what it reads, so not the next of short rows.
    for (std::int64_t x = 0; across < kShort && x < across; x += kLine)
      ask_for(even + kAhead * from.along + x), ask_for(odd + kAhead * from.along + x);
    const bool whole = 2 * pair + 1 < along;
    for (std::int64_t x = 0; x < across; x += kLanes) {
      char* const at =
          to + x / kAcross * kAcross * 4 * pairs + pair * pair_bytes(across, x) + x % kAcross * 4;
      if (whole && x + kLanes <= across) {
        _mm512_store_si512(at, pairs_of(low_halves(even + x), low_halves(odd + x)));
      } else {
        const __mmask16 lanes = first_of_16(across - x), none{0};
        _mm512_store_si512(at, pairs_of(low_halves(even + x, 2 * pair < along ? lanes : none),
                                        low_halves(odd + x, whole ? lanes : none)));
      }
    }
  }
}

/// Rows of the source lie along the contraction: pairs lie side by side, and are turned.
TESSERA_TILES void pack_columns(const PairSource& from, std::int64_t across, std::int64_t along,
                                char* to) {
  const std::int64_t depth = round_up(along, 2 * kLanes);
  for (std::int64_t left = 0; left < across; left += kAcross) {
    const std::int64_t step = pair_bytes(across, left);
    char* const panel = to + left * 2 * depth;
    for (std::int64_t k = 0; k < depth; k += 2 * kLanes) {
      for (std::int64_t x = left; x < std::min(left + kAcross, across); x += kLanes) {
        const Bf16* row = from.data + x * from.across + k;
        __m512i rows[kLanes];
        if (x + kLanes <= across && k + 2 * kLanes <= along) {
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i, row += from.across) {
            ask_for(row + 64);  // two lines on: rows are many
            rows[i] = _mm512_loadu_si512(row);
          }
        } else {
          const __mmask32 lanes = first_of_32(along - k);
          for (int i = 0; i < kLanes; ++i, row += from.across)
            rows[i] = _mm512_maskz_loadu_epi16(x + i < across ? lanes : __mmask32{0}, row);
        }
        transpose(rows, panel + k / 2 * step + (x - left) * 4, step);
      }
    }
  }
}

}  // namespace

TESSERA_TILES void pack_pairs(const PairSource& from, std::int64_t across, std::int64_t along,
                              char* to) {
  from.along == 1 ? pack_columns(from, across, along, to) : pack_rows(from, across, along, to);
}

}  // namespace tessera::cpu

#endif
