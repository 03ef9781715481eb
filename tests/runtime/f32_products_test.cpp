/// How f32 products are chosen.

#include "tessera/runtime/f32_products.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

TEST(F32ProductsChoice, IsAmxOnlyWhereItIsClearlyFaster) {
  EXPECT_EQ(faster_products(1.39), F32Products::Amx);
  EXPECT_EQ(faster_products(0.64), F32Products::Fma);
  EXPECT_EQ(faster_products(1.01), F32Products::Fma);  // no more than two turns differ
}

TEST(F32ProductsChoice, IsMeasuredOnTheMachine) {
  if (machine_choices().isa < Isa::Amx) GTEST_SKIP() << "needs a processor with AMX and bf16";
  const double speedup = measure_amx_speedup(1);
  EXPECT_TRUE(std::isfinite(speedup) && speedup > 0) << speedup;
}

}  // namespace
}  // namespace tessera
