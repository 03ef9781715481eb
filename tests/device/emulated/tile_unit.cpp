#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

// In place of the processor's answer: every unit is there, as loops (immintrin.h).
bool tile_unit_usable(TileUnit) { return true; }

}  // namespace tessera::cpu
