#pragma once
/// Which instruction sets vector files are compiled for; to be included before hwy/highway.h and
/// foreach_target.h.
///
/// A baseline, AVX2 and AVX-512 (Highway's AVX3): each further one compiles every file once more
/// and gained nothing.

#ifdef TESSERA_LEFT_OUT  // of the three, by TESSERA_ISA=native (cmake/isa.cmake)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | TESSERA_LEFT_OUT)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
