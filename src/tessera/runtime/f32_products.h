#pragma once
/// Whether AMX or multiply-adds are faster for products of f32 on this machine.

#include "tessera/device/device.h"

namespace tessera {

/// How many times as fast as multiply-adds AMX makes the products of a layer of GPT-2 small and of
/// its gradients, on so many threads: the median of turns, in less than a second. Needs Isa::Amx.
double measure_amx_speedup(int threads);

/// Amx where it is faster by more than such measurements differ; else multiply-adds, which keep no
/// split copies of operands.
constexpr F32Products faster_products(double amx_speedup) {
  constexpr double kNoise = 1.05;
  return amx_speedup > kNoise ? F32Products::Amx : F32Products::Fma;
}

}  // namespace tessera
