// A block of 6 x 16 sums of a product, whose loop is written out for AVX2: included after
// hwy/highway.h, inside foreach_target.
//
// With 12 sums and 16 registers, compilers reorder instructions and keep some sums in memory, where
// every addition waits for the store of the one before: attention's forward pass took 1.5 times as
// long. And the fewer instructions there are beside the products, the less is lost where two
// threads share a core, which then issues about half as many of each: on Zen 3 the loop of a
// compiler loses 30 % of its speed there, this one 10 %. The loop starts at a cache line; otherwise
// it is up to 8 % slower.

#if defined(TESSERA_FMA_BLOCK) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_FMA_BLOCK
#undef TESSERA_FMA_BLOCK
#else
#define TESSERA_FMA_BLOCK
#endif

#include <cstdint>

#if HWY_TARGET == HWY_AVX2

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

// clang-format off
//
// Sums are in registers 0 to 11, row by row; two vectors of B in 12 and 13; a number of A in 14 or
// 15.
#define TESSERA_ROW(from, number, left, right)               \
  "vbroadcastss " from ", %%ymm" #number "\n"                \
  "vfmadd231ps %%ymm12, %%ymm" #number ", %%ymm" #left "\n"  \
  "vfmadd231ps %%ymm13, %%ymm" #number ", %%ymm" #right "\n"
// A step of the contraction; numbers of A are read from a0 to a5.
#define TESSERA_STEP(a0, a1, a2, a3, a4, a5)      \
  "vmovups (%[b]), %%ymm12\n"                     \
  "vmovups 32(%[b]), %%ymm13\n"                   \
  "add %[ldb], %[b]\n"                            \
  TESSERA_ROW(a0, 14, 0, 1)                       \
  TESSERA_ROW(a1, 15, 2, 3)                       \
  TESSERA_ROW(a2, 14, 4, 5)                       \
  TESSERA_ROW(a3, 15, 6, 7)                       \
  TESSERA_ROW(a4, 14, 8, 9)                       \
  TESSERA_ROW(a5, 15, 10, 11)
// Step k of those that pass A together. A's numbers along the contraction are adjacent, or those of
// its six rows are.
#define TESSERA_IN_ROWS(k)                        \
  TESSERA_STEP("4*" #k "(%[a])",                  \
               "4*" #k "(%[a],%[row])",           \
               "4*" #k "(%[a],%[row],2)",         \
               "4*" #k "(%[a],%[row3])",          \
               "4*" #k "(%[a],%[row],4)",         \
               "4*" #k "(%[a],%[row5])")
#define TESSERA_IN_COLUMNS(k)                     \
  TESSERA_STEP("(%[a])", "4(%[a])", "8(%[a])", "12(%[a])", "16(%[a])", "20(%[a])") \
  "add %[column], %[a]\n"
#define TESSERA_PASS_ROWS(steps) "add $4*" #steps ", %[a]\n"
#define TESSERA_PASS_COLUMNS(steps)
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
// Steps of the contraction, first four at once; the strides of A in bytes.
#define TESSERA_BLOCK(step, pass, ...)                                              \
  asm volatile(                                                                     \
      TESSERA_EACH_ROW(TESSERA_CLEAR)                                               \
      "test %[fours], %[fours]\n"                                                   \
      "jle 2f\n"                                                                    \
      ".p2align 6\n"                                                                \
      "1:\n"                                                                        \
      step(0) step(1) step(2) step(3)                                               \
      pass(4)                                                                       \
      "dec %[fours]\n"                                                              \
      "jnz 1b\n"                                                                    \
      "2:\n"                                                                        \
      "test %[ones], %[ones]\n"                                                     \
      "jle 4f\n"                                                                    \
      "3:\n"                                                                        \
      step(0)                                                                       \
      pass(1)                                                                       \
      "dec %[ones]\n"                                                               \
      "jnz 3b\n"                                                                    \
      "4:\n"                                                                        \
      "test %[old], %[old]\n"                                                       \
      "jz 5f\n"                                                                     \
      TESSERA_EACH_ROW(TESSERA_ADD)                                                 \
      "5:\n"                                                                        \
      TESSERA_EACH_ROW(TESSERA_STORE)                                               \
      : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [old] "+&r"(old),                 \
        [fours] "+&r"(fours), [ones] "+&r"(ones)                                    \
      : [ldb] "r"(4 * ldb), [ldc] "r"(4 * ldc), __VA_ARGS__                         \
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",     \
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
// clang-format on

/// C = A B, or C += A B, of 6 rows and 16 columns. a_col or a_row is 1; strides are in floats.
HWY_INLINE void fma_block(std::int64_t depth, const float* a, std::int64_t a_row,
                          std::int64_t a_col, const float* b, std::int64_t ldb, float* c,
                          std::int64_t ldc, bool add) {
  HWY_DASSERT(depth >= 0 && (a_col == 1 || a_row == 1));
  const float* old = add ? c : nullptr;
  std::int64_t fours = depth / 4, ones = depth % 4;
  if (a_col == 1) {
    TESSERA_BLOCK(
        TESSERA_IN_ROWS,
        TESSERA_PASS_ROWS, [row] "r"(4 * a_row), [row3] "r"(12 * a_row), [row5] "r"(20 * a_row));
  } else {
    TESSERA_BLOCK(TESSERA_IN_COLUMNS, TESSERA_PASS_COLUMNS, [column] "r"(4 * a_col));
  }
}

#undef TESSERA_ROW
#undef TESSERA_STEP
#undef TESSERA_IN_COLUMNS
#undef TESSERA_IN_ROWS
#undef TESSERA_PASS_ROWS
#undef TESSERA_PASS_COLUMNS
#undef TESSERA_CLEAR
#undef TESSERA_ADD
#undef TESSERA_STORE
#undef TESSERA_EACH_ROW
#undef TESSERA_BLOCK

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
