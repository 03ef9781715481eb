/// Products on packed tiles (tile_gemm_test.cpp), as the device chooses and cuts them. These tests
/// are two programs too: emulated_test is on a machine with every unit (emulated/choices.cpp).

#include <gtest/gtest.h>

#include "device/product_trial.h"

namespace tessera {
namespace {

/// The kernel of f32 at the levels avx512 and avx512-bf16. Emulated, they are levels of processors
/// that have less: on those with AVX2, libraries are slower than products of our own.
std::string f32_kernel() {
  // Not asked of Highway, which would choose anew, of all that the processor has.
  const bool avx2_at_most =
      __builtin_cpu_supports("avx512f") == 0 && __builtin_cpu_supports("avx2") != 0;
  return avx2_at_most ? "hwy:matmul" : "onednn:matmul";
}

/// Of f32 on AMX, and of bf16 wherever a unit multiplies it. Only sums of parts that are rounded
/// are left to products of f32.
TEST(TileProducts, HaveTheSameBitsOnAnyThreads) {
  if (machine_choices().isa < Isa::Avx512Bf16) GTEST_SKIP() << "needs AVX512-BF16 or AMX";
  const struct {
    Isa isa;
    DType in, out;
    std::string kernel, of_parts;
  } products[] = {
      {Isa::Amx, DType::F32, DType::F32, "amx:matmul", "amx:matmul"},
      {Isa::Amx, DType::BF16, DType::F32, "amx:matmul", "amx:matmul"},
      {Isa::Amx, DType::BF16, DType::BF16, "amx:matmul", "widened amx:matmul"},
      {Isa::Avx512Bf16, DType::BF16, DType::F32, "avx512-bf16:matmul", "avx512-bf16:matmul"},
      {Isa::Avx512Bf16, DType::BF16, DType::BF16, "avx512-bf16:matmul", "widened " + f32_kernel()},
  };
  for (const auto& p : products) {
    if (p.isa > machine_choices().isa) continue;
    for (const testing::CutMatmul& c : testing::kCutMatmuls) {
      SCOPED_TRACE(text(c.name, ", ", p.in, " to ", p.out, ", ", to_text(p.isa)));
      EXPECT_EQ(
          testing::expect_same_on_any_threads(c, machine_choices().at_most(p.isa), p.in, p.out),
          c.adds ? p.of_parts : p.kernel);
    }
  }
}

/// A product for tiles reads weights as they lie; one that is too flat for tiles may pack.
TEST(TileProducts, PackOnlyWhatTheyDoNotCompute) {
  if (machine_choices().isa < Isa::Amx) GTEST_SKIP() << "needs a processor with AMX and bf16";
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 1}),
                                plain = make_cpu_device(
                                    {.threads = 1,
                                     .choices = machine_choices().at_most(Isa::Avx512Bf16)});
  const Attrs rule = {std::string("m k, n k -> m n")};
  constexpr std::int64_t kUses = 1000;
  for (const std::int64_t m : {8, 64}) {
    const TensorType a{DType::F32, {m, 64}, {}}, b{DType::F32, {48, 64}, {}},
        c{DType::F32, {m, 48}, {}};
    const OpCall call(kMatmul, {&a, &b}, rule, {&c});
    const bool plain_packs = plain->wanted_layout(call, 1, kUses).has_value();
    EXPECT_EQ(device->wanted_layout(call, 1, kUses).has_value(), m == 8 && plain_packs);
  }
}

TEST(TileProducts, ADeviceCanBeToldToDoWithoutAmx) {
  if (machine_choices().isa < Isa::Amx) GTEST_SKIP() << "needs a processor with AMX and bf16";
  const std::vector<HostTensor> ins = {testing::random_tensor(DType::F32, {64, 64}, 1),
                                       testing::random_tensor(DType::F32, {64, 64}, 2)};
  const Attrs rule = {std::string("m k, k n -> m n")};
  for (const Isa isa : {Isa::Avx512, Isa::Avx512Bf16, Isa::Amx}) {
    const std::unique_ptr<Device> device =
        make_cpu_device({.threads = 1, .choices = machine_choices().at_most(isa)});
    EXPECT_EQ(device->isa(), to_text(isa));
    EXPECT_EQ(testing::run_kernel(*device, kMatmul, rule, ins, {{DType::F32, {64, 64}, {}}}).kernel,
              isa == Isa::Amx ? "amx:matmul" : f32_kernel());
  }
}

/// Products of bf16 are made on tiles all the same, and weights are packed as without AMX.
TEST(TileProducts, ADeviceCanBeToldToMultiplyF32WithoutAmx) {
  if (machine_choices().isa < Isa::Amx) GTEST_SKIP() << "needs a processor with AMX and bf16";
  constexpr std::int64_t kUses = 1000;
  const Attrs rule = {std::string("m k, k n -> m n")};
  for (const F32Products products : {F32Products::Fma, F32Products::Amx}) {
    const bool tiles = products == F32Products::Amx;
    const std::unique_ptr<Device> device =
        make_cpu_device({.threads = 1, .choices = CpuChoices{Isa::Amx, true, products}});
    EXPECT_EQ(device->f32_products(), to_text(products));
    for (const DType dtype : {DType::F32, DType::BF16}) {
      const std::vector<HostTensor> ins = {testing::random_tensor(dtype, {64, 64}, 1),
                                           testing::random_tensor(dtype, {64, 64}, 2)};
      EXPECT_EQ(testing::run_kernel(*device, kMatmul, rule, ins, {{dtype, {64, 64}, {}}}).kernel,
                tiles || dtype == DType::BF16 ? "amx:matmul" : f32_kernel());
    }
    const TensorType square{DType::F32, {64, 64}, {}};
    const OpCall call(kMatmul, {&square, &square}, rule, {&square});
    EXPECT_EQ(device->wanted_layout(call, 1, kUses).has_value(), !tiles);
  }
}

/// Where no unit multiplies bf16, f32 products do, between conversions. Parts of a contraction are
/// added up in the result, so that one of bf16 would be rounded more than once.
TEST(TileProducts, OfBf16AreChosenByLevel) {
  const std::string one = "m k, k n -> m n", parts = "m l k, k l n -> m n", f32 = f32_kernel();
  const struct {
    const char* name;
    std::int64_t rows;
    Isa isa;
    std::string rule, kernel;  // of a result of f32
    std::string rounded = {};  // of a result of bf16; empty: the same
  } cases[] = {
      {"full tiles", 64, Isa::Amx, one, "amx:matmul"},
      {"a sum of parts", 64, Isa::Amx, parts, "amx:matmul", "widened amx:matmul"},
      {"too flat for whole tiles", 12, Isa::Amx, one, "avx512-bf16:matmul"},
      {"too flat for any", 2, Isa::Amx, one, "widened onednn:matmul"},
      {"without AMX", 64, Isa::Avx512Bf16, one, "avx512-bf16:matmul"},
      {"parts without AMX", 64, Isa::Avx512Bf16, parts, "avx512-bf16:matmul", "widened " + f32},
      {"without either", 64, Isa::Avx512, one, "widened " + f32},
      {"parts without either", 64, Isa::Avx512, parts, "widened " + f32},
      {"the least with products of our own", 64, Isa::Avx2, one, "widened hwy:matmul"},
  };
  int tested = 0;
  for (const auto& c : cases) {
    if (c.isa > machine_choices().isa) continue;
    // Libraries have one level per process.
    if (c.isa == Isa::Avx2 && machine_choices().isa > Isa::Avx2) continue;
    SCOPED_TRACE(c.name);
    const std::unique_ptr<Device> device =
        make_cpu_device({.threads = 1, .choices = machine_choices().at_most(c.isa)});
    const bool in_parts = c.rule == parts;
    const Shape a = in_parts ? Shape{c.rows, 3, 64} : Shape{c.rows, 64},
                b = in_parts ? Shape{64, 3, 48} : Shape{64, 48};
    const std::vector<HostTensor> ins = {testing::random_tensor(DType::BF16, a, 1),
                                         testing::random_tensor(DType::BF16, b, 2)};
    for (const DType out : {DType::BF16, DType::F32}) {
      const testing::KernelRun run =
          testing::run_kernel(*device, kMatmul, {c.rule, out}, ins, {{out, {c.rows, 48}, {}}});
      const bool other = out == DType::BF16 && !c.rounded.empty();
      EXPECT_EQ(run.kernel, other ? c.rounded : c.kernel);
      const bool converted = starts_with(run.kernel, "widened ");
      const bool rounds_parts = in_parts && out == DType::BF16;
      EXPECT_EQ(!converted, c.rows > 8 && multiplies_16_bit(DType::BF16, c.isa) && !rounds_parts);
      ++tested;
    }
  }
  if (tested == 0) GTEST_SKIP() << "needs a processor with AVX2";
}

TEST(TileProducts, OfF16AreConverted) {
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
  const std::vector<HostTensor> ins = {testing::random_tensor(DType::F16, {64, 64}, 1),
                                       testing::random_tensor(DType::F16, {64, 64}, 2)};
  EXPECT_EQ(testing::expect_like_reference(*device, kMatmul, {std::string("m k, k n -> m n")}, ins,
                                           {0x1p-11, 1e-5})
                .substr(0, 8),
            "widened ");
}

/// Products of 16 bits pack within the call, so that no second copy of a weight is kept.
TEST(TileProducts, WeightsOf16BitsAreNotPackedAhead) {
  CpuChoices choices = machine_choices();
  choices.pack_weights = true;
  const std::unique_ptr<Device> device =
      make_cpu_device({.threads = 1, .pack_always = true, .choices = choices});
  const Attrs rule = {std::string("m k, n k -> m n")};
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    const TensorType a{dtype, {1024, 512}, {}}, b{dtype, {512, 512}, {}}, c{dtype, {1024, 512}, {}};
    EXPECT_EQ(device->wanted_layout(OpCall(kMatmul, {&a, &b}, rule, {&c}), 1, 1000).has_value(),
              dtype == DType::F32);
  }
}

}  // namespace
}  // namespace tessera
