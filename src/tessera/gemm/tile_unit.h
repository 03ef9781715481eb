#pragma once
/// Units of x86 processors that multiply bf16 and add in f32.

#include <cstdint>

// Functions that use these units: compilers do not by themselves. Tests compile them for every
// processor: tests/device/emulated.
#if !defined(TESSERA_TILES) && defined(__x86_64__)
#define TESSERA_TILES \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))
#endif

namespace tessera::cpu {

enum class TileUnit : std::uint8_t {
  Amx,   // whole tiles at a time (TDPBF16PS): Sapphire Rapids and later
  Dots,  // a row of a tile at a time (VDPBF16PS of AVX512-BF16): Zen 4, Cooper Lake, and those with
         // AMX
};

/// True where the processor has the unit and the system lets this process use it: of Amx, the first
/// call asks, for all threads and for processes that are forked later.
bool tile_unit_usable(TileUnit unit);

}  // namespace tessera::cpu
