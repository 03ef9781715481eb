#include "tessera/gemm/tile_unit.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tessera::cpu {

namespace {

bool has_dots() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bf16") != 0;
}

bool ask_for_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1U << 22, kTileUnit = 1U << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kBf16) == 0 || (d & kTileUnit) == 0 || !has_dots()) return false;
  // Linux hands out the tiles' state (17 and 18 of XCR0) on request, for the process.
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

bool tile_unit_usable(TileUnit unit) {
  static const bool dots = has_dots();
  if (unit == TileUnit::Dots) return dots;
  static const bool amx = ask_for_amx();
  return amx;
}

}  // namespace tessera::cpu

#else

namespace tessera::cpu {

bool tile_unit_usable(TileUnit) { return false; }

}  // namespace tessera::cpu

#endif
