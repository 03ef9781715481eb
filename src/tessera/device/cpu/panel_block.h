// A block of 6 x 16 sums of a product by panels, whose loop is written out for AVX2: included after
// hwy/highway.h, inside foreach_target.
//
// Compilers that order the instructions of 12 sums in 16 registers spill some of them. And the
// fewer instructions there are beside the products, the less is lost where two threads share a
// core, which then issues about half as many of each: on Zen 3 the loop of a compiler loses 30 % of
// its speed there, this one 10 %.

#if defined(TESSERA_PANEL_BLOCK) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_PANEL_BLOCK
#undef TESSERA_PANEL_BLOCK
#else
#define TESSERA_PANEL_BLOCK
#endif

#include "tessera/device/cpu/vector_product.h"

#if HWY_TARGET == HWY_AVX2

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

// clang-format off
//
// Sums are in registers 0 to 11, row by row; two vectors of B in 12 and 13; a number of A in 14 or 15.
#define TESSERA_ROW(from, number, left, right)               \
  "vbroadcastss " from ", %%ymm" #number "\n"                \
  "vfmadd231ps %%ymm12, %%ymm" #number ", %%ymm" #left "\n"  \
  "vfmadd231ps %%ymm13, %%ymm" #number ", %%ymm" #right "\n"
// Step k of the contraction; numbers of A are read from a0 to a5.
#define TESSERA_STEP(k, a0, a1, a2, a3, a4, a5)   \
  "vmovups 64*" #k "(%[b]), %%ymm12\n"            \
  "vmovups 64*" #k "+32(%[b]), %%ymm13\n"         \
  TESSERA_ROW(a0, 14, 0, 1)                       \
  TESSERA_ROW(a1, 15, 2, 3)                       \
  TESSERA_ROW(a2, 14, 4, 5)                       \
  TESSERA_ROW(a3, 15, 6, 7)                       \
  TESSERA_ROW(a4, 14, 8, 9)                       \
  TESSERA_ROW(a5, 15, 10, 11)
#define TESSERA_IN_PANEL(k)                       \
  TESSERA_STEP(k,                                 \
               "24*" #k "(%[a])",                 \
               "24*" #k "+4(%[a])",               \
               "24*" #k "+8(%[a])",               \
               "24*" #k "+12(%[a])",              \
               "24*" #k "+16(%[a])",              \
               "24*" #k "+20(%[a])")
#define TESSERA_IN_ROWS(k)                        \
  TESSERA_STEP(k,                                 \
               "4*" #k "(%[a])",                  \
               "4*" #k "(%[a],%[row])",           \
               "4*" #k "(%[a],%[row],2)",         \
               "4*" #k "(%[a],%[row3])",          \
               "4*" #k "(%[a],%[row],4)",         \
               "4*" #k "(%[a],%[row5])")
#define TESSERA_CLEAR(left, right)                            \
  "vxorps %%ymm" #left ", %%ymm" #left ", %%ymm" #left "\n"   \
  "vxorps %%ymm" #right ", %%ymm" #right ", %%ymm" #right "\n"
#define TESSERA_ADD(left, right)                          \
  "vaddps (%[old]), %%ymm" #left ", %%ymm" #left "\n"     \
  "vaddps 32(%[old]), %%ymm" #right ", %%ymm" #right "\n" \
  "add %[ldc], %[old]\n"
#define TESSERA_STORE(left, right)                        \
  "vmovups %%ymm" #left ", (%[c])\n"                      \
  "vmovups %%ymm" #right ", 32(%[c])\n"                   \
  "add %[ldc], %[c]\n"
#define TESSERA_EACH_ROW(f) f(0, 1) f(2, 3) f(4, 5) f(6, 7) f(8, 9) f(10, 11)
// Steps of the contraction, first four at once; each takes so many bytes of A.
#define TESSERA_BLOCK(step, bytes)                        \
  asm volatile(                                           \
      TESSERA_EACH_ROW(TESSERA_CLEAR)                     \
      "test %[fours], %[fours]\n"                         \
      "jz 2f\n"                                           \
      "1:\n"                                              \
      step(0) step(1) step(2) step(3)                     \
      "add $4*" #bytes ", %[a]\n"                         \
      "add $256, %[b]\n"                                  \
      "dec %[fours]\n"                                    \
      "jnz 1b\n"                                          \
      "2:\n"                                              \
      "test %[ones], %[ones]\n"                           \
      "jz 4f\n"                                           \
      "3:\n"                                              \
      step(0)                                             \
      "add $" #bytes ", %[a]\n"                           \
      "add $64, %[b]\n"                                   \
      "dec %[ones]\n"                                     \
      "jnz 3b\n"                                          \
      "4:\n"                                              \
      "test %[old], %[old]\n"                             \
      "jz 5f\n"                                           \
      TESSERA_EACH_ROW(TESSERA_ADD)                       \
      "5:\n"                                              \
      TESSERA_EACH_ROW(TESSERA_STORE)                     \
      : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [old] "+r"(old),                       \
        [fours] "+r"(fours), [ones] "+r"(ones)                                        \
      : [ldc] "r"(p.ldc * 4), [row] "r"(row), [row3] "r"(3 * row), [row5] "r"(5 * row) \
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",       \
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
// clang-format on

/// Like register_block<6, 2>, with B in a panel. `packed`: A is in one too, else in rows.
HWY_INLINE void panel_block(const Product& p, bool packed) {
  const float *a = p.a, *b = p.b, *old = p.add ? p.c : nullptr;
  float* c = p.c;
  Index fours = p.depth / 4, ones = p.depth % 4;
  const Index row = 4 * p.a_row;  // bytes
  if (packed) {
    TESSERA_BLOCK(TESSERA_IN_PANEL, 24);
  } else {
    TESSERA_BLOCK(TESSERA_IN_ROWS, 4);
  }
}

#undef TESSERA_ROW
#undef TESSERA_STEP
#undef TESSERA_IN_PANEL
#undef TESSERA_IN_ROWS
#undef TESSERA_CLEAR
#undef TESSERA_ADD
#undef TESSERA_STORE
#undef TESSERA_EACH_ROW
#undef TESSERA_BLOCK

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
