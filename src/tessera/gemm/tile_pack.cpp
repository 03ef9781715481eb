#include "tessera/gemm/tile_pack.h"

#if defined(__x86_64__) && defined(__linux__)

#include <algorithm>

#include "tessera/gemm/intrinsics.h"
#include "tessera/gemm/transpose.h"

namespace tessera::cpu {

namespace {

#define TESSERA_INLINE inline __attribute__((always_inline))

/// Bits 0 to n - 1.
TESSERA_TILES __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(n, 0, kTile)) - 1);
}

/// Splits two rows of 16 numbers: part p of both goes, as pairs of bf16, to `to` + p * stride. The
/// parts add up to the numbers.
TESSERA_TILES TESSERA_INLINE void split(__m512 low, __m512 high, char* to, std::int64_t stride) {
  const __m512i half = _mm512_set1_epi32(0x8000), top = _mm512_set1_epi32(-0x10000);
#pragma GCC unroll 2
  for (int part = 0; part < kParts<float> - 1; ++part) {
    const __m512i near_low =
        _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(low), half), top);
    const __m512i near_high =
        _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(high), half), top);
    _mm512_store_si512(to, _mm512_or_si512(_mm512_srli_epi32(near_low, 16), near_high));
    low = _mm512_sub_ps(low, _mm512_castsi512_ps(near_low));
    high = _mm512_sub_ps(high, _mm512_castsi512_ps(near_high));
    to += stride;
  }
  // What is left has no more than 8 bits.
  const __m512i last = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
  _mm512_store_si512(to, _mm512_or_si512(last, _mm512_and_si512(_mm512_castps_si512(high), top)));
}

/// Of bf16 (load) there is one part.
TESSERA_TILES TESSERA_INLINE void split(__m512i low, __m512i high, char* to, std::int64_t) {
  _mm512_store_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

/// 16 neighbours, or those of them in `lanes` and zeros; bf16 as the lower halves of 32 bits.
TESSERA_TILES TESSERA_INLINE __m512 load(const float* from) { return _mm512_loadu_ps(from); }
TESSERA_TILES TESSERA_INLINE __m512 load(const float* from, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
TESSERA_TILES TESSERA_INLINE __m512i load(const Bf16* from) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
TESSERA_TILES TESSERA_INLINE __m512i load(const Bf16* from, __mmask16 lanes) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from));
}

template <typename In>
TESSERA_TILES TESSERA_INLINE void fetch(const In* at) {
  __builtin_prefetch(at, 0, 3);
}

/// Rows of 64 bytes become columns of 4 bytes.
TESSERA_TILES TESSERA_INLINE void turn(const char* from, char* to) {
  __m512i r[kTile];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(from + 64 * i);
  transpose(r, to, 64);
}

/// Which dim lies densely in the source.
enum class Dense { Across, Along };

/// Writes one tile per part, `stride` bytes apart. What lies beyond `across` or `along` is zero.
template <Lanes lanes, Dense dense, typename In>
TESSERA_TILES TESSERA_INLINE void pack_tile(const Source<In>& from, std::int64_t across,
                                            std::int64_t along, char* to, std::int64_t stride) {
  constexpr bool kAlong = dense == Dense::Along;
  constexpr bool kTurned = kAlong != (lanes == Lanes::Along);
  const In* low = from.data;
  const In* high = low + kTile * from.along;
  const std::int64_t row = kAlong ? from.across : from.along;
  alignas(64) char rows[kTurned ? kParts<In> * kTileBytes : 1];
  char* const split_to = kTurned ? rows : to;
  const std::int64_t split_stride = kTurned ? kTileBytes : stride;
  if (across >= kTile && along >= kDepth) {
#pragma GCC unroll 2
    for (int i = 0; i < kTile; ++i, low += row, high += row) {
      if constexpr (kAlong && kParts<In> == 1) fetch(low + 64);  // two lines on: rows are many
      split(load(low), load(high), split_to + i * 64, split_stride);
    }
  } else {
    const std::int64_t low_rows = kAlong ? across : along;
    const std::int64_t high_rows = kAlong ? across : along - kTile;
    const __mmask16 low_lanes = first_lanes(kAlong ? along : across);
    const __mmask16 high_lanes = first_lanes(kAlong ? along - kTile : across);
    for (int i = 0; i < kTile; ++i, low += row, high += row) {
      split(load(low, i < low_rows ? low_lanes : __mmask16{0}),
            load(high, i < high_rows ? high_lanes : __mmask16{0}), split_to + i * 64, split_stride);
    }
  }
  if constexpr (kTurned) {
    for (int part = 0; part < kParts<In>; ++part)
      turn(rows + part * kTileBytes, to + part * stride);
  }
}

/// Where a tile of a packed block lies, and how far its next part.
template <typename In>
struct Tiles {
  std::int64_t across, steps;
  char* to;
  std::int64_t stride(std::int64_t x) const {
    return std::min(kPanel, (across - x / kWide * kWide + kTile - 1) / kTile) * kTileBytes;
  }
  char* at(std::int64_t x, std::int64_t step) const {
    return to + x / kWide * steps * step_bytes<In>(kPanel) + step * kParts<In> * stride(x) +
           x % kWide / kTile * kTileBytes;
  }
};

/// Rows of the source become rows of tiles: of each two that share them, from beginning to end. Not
/// of f32, each of whose rows goes to three places.
template <typename In>
TESSERA_TILES void pack_rows(const Source<In>& from, std::int64_t along, const Tiles<In>& tiles) {
  constexpr std::int64_t kLine = 64 / sizeof(In), kShort = 16 * kLine, kAhead = kDepth;
  const std::int64_t across = tiles.across;
  for (std::int64_t i = 0; i < tiles.steps * kTile; ++i) {
    const std::int64_t step = i / kTile, k = step * kDepth + i % kTile;
    const In *const low = from.data + k * from.along, *const high = low + kTile * from.along;
    // The processor foresees what is next to what it reads, so not the next of short rows.
    for (std::int64_t x = 0; across < kShort && x < across; x += kLine)
      fetch(low + kAhead * from.along + x), fetch(high + kAhead * from.along + x);
    for (std::int64_t x = 0; x < across; x += kTile) {
      char* const at = tiles.at(x, step) + i % kTile * 64;
      if (k + kTile < along && x + kTile <= across) {
        split(load(low + x), load(high + x), at, tiles.stride(x));
      } else {
        const __mmask16 lanes = first_lanes(across - x), none{0};
        split(load(low + x, k < along ? lanes : none),
              load(high + x, k + kTile < along ? lanes : none), at, tiles.stride(x));
      }
    }
  }
}

/// The source is read the way it lies.
template <Lanes lanes, Dense dense, typename In>
TESSERA_TILES void pack_panels(const Source<In>& from, std::int64_t along, const Tiles<In>& tiles) {
  const auto pack = [&](std::int64_t left, std::int64_t step) TESSERA_TILES {
    for (std::int64_t x = left; x < std::min(left + kWide, tiles.across); x += kTile) {
      const std::int64_t k = step * kDepth;
      pack_tile<lanes, dense, In>(
          {from.data + x * from.across + k * from.along, from.across, from.along}, tiles.across - x,
          along - k, tiles.at(x, step), tiles.stride(x));
    }
  };
  if constexpr (dense == Dense::Across) {
    for (std::int64_t step = 0; step < tiles.steps; ++step)
      for (std::int64_t left = 0; left < tiles.across; left += kWide) pack(left, step);
  } else {
    for (std::int64_t left = 0; left < tiles.across; left += kWide)
      for (std::int64_t step = 0; step < tiles.steps; ++step) pack(left, step);
  }
}

}  // namespace

template <Lanes lanes, typename In>
TESSERA_TILES void pack_block(const Source<In>& from, std::int64_t across, std::int64_t along,
                              char* to) {
  const Tiles<In> tiles{across, round_up(along, kDepth) / kDepth, to};
  if (from.along == 1) {
    pack_panels<lanes, Dense::Along>(from, along, tiles);
  } else if constexpr (lanes == Lanes::Across && kParts<In> == 1) {
    pack_rows(from, along, tiles);
  } else {
    pack_panels<lanes, Dense::Across>(from, along, tiles);
  }
}

#define TESSERA_PACK_BLOCK(lanes, In) \
  template void pack_block<lanes, In>(const Source<In>&, std::int64_t, std::int64_t, char*)
TESSERA_PACK_BLOCK(Lanes::Across, float);
TESSERA_PACK_BLOCK(Lanes::Along, float);
TESSERA_PACK_BLOCK(Lanes::Across, Bf16);
TESSERA_PACK_BLOCK(Lanes::Along, Bf16);

}  // namespace tessera::cpu

#endif
