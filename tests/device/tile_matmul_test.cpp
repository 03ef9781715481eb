/// Products on packed tiles (tile_gemm_test.cpp), as the device chooses and cuts them.

#include <gtest/gtest.h>

#include <algorithm>

#include "device/kernel_test.h"
#include "tessera/base/text.h"
#include "tessera/ops/matmul.h"

namespace tessera {
namespace {

/// The unit by which this machine multiplies matrices of `dtype` that fill whole tiles; empty:
/// none.
std::string unit_of(DType dtype) {
  const Isa isa = machine_choices().isa;
  if (isa >= Isa::Amx) return "amx:matmul";
  return isa >= Isa::Avx512Bf16 && dtype == DType::BF16 ? "avx512-bf16:matmul" : "";
}

/// Of f32 on AMX, and of bf16 wherever a unit multiplies it.
TEST(TileProducts, HaveTheSameBitsOnAnyThreads) {
  const struct {
    const char *name, *rule;
    Shape a, b, c;
  } cases[] = {
      {"rows and contraction merge", "b s n, b s k -> n k", {3, 50, 96}, {3, 50, 130}, {96, 130}},
      {"cut by rows", "b s k, n k -> b s n", {3, 70, 96}, {40, 96}, {3, 70, 40}},
      {"operands change roles", "m k, k n -> n m", {100, 64}, {64, 50}, {50, 100}},
      {"batches", "b m k, b k n -> b m n", {5, 40, 36}, {5, 36, 50}, {5, 40, 50}},
      {"a sum of parts", "m k l, l k n -> m n", {40, 6, 50}, {50, 6, 80}, {40, 80}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    for (const DType dtype : {DType::F32, DType::BF16}) {
      const std::string unit = unit_of(dtype);
      if (unit.empty()) continue;
      const std::vector<HostTensor> ins = {testing::random_tensor(dtype, c.a, 1),
                                           testing::random_tensor(dtype, c.b, 2)};
      std::vector<HostTensor> outs;
      for (const int threads : {1, 2, 3, 5}) {
        const std::unique_ptr<Device> device = make_cpu_device({.threads = threads});
        testing::KernelRun run = testing::run_kernel(
            *device, kMatmul, {std::string(c.rule), DType::F32}, ins, {{DType::F32, c.c, {}}});
        EXPECT_EQ(run.kernel, unit);
        outs.push_back(std::move(run.outs[0]));
        EXPECT_TRUE(std::ranges::equal(outs.back().bytes(), outs.front().bytes())) << threads;
      }
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
              isa == Isa::Amx ? "amx:matmul" : "onednn:matmul");
  }
}

/// Where no unit multiplies bf16, f32 products do, between conversions.
TEST(TileProducts, OfBf16AreChosenByLevel) {
  const Attrs rule = {std::string("m k, k n -> m n")};
  const struct {
    const char* name;
    std::int64_t rows;
    Isa isa;
    std::string kernel;
  } cases[] = {
      {"full tiles", 64, Isa::Amx, "amx:matmul"},
      {"too flat for whole tiles", 12, Isa::Amx, "avx512-bf16:matmul"},
      {"too flat for any", 2, Isa::Amx, "widened onednn:matmul"},
      {"without AMX", 64, Isa::Avx512Bf16, "avx512-bf16:matmul"},
      {"without either", 64, Isa::Avx512, "widened onednn:matmul"},
      {"the least with products of our own", 64, Isa::Avx2, "widened hwy:matmul"},
  };
  for (const auto& c : cases) {
    if (c.isa > machine_choices().isa) continue;
    // Libraries have one level per process.
    if (c.isa == Isa::Avx2 && machine_choices().isa > Isa::Avx2) continue;
    SCOPED_TRACE(c.name);
    const std::unique_ptr<Device> device =
        make_cpu_device({.threads = 1, .choices = machine_choices().at_most(c.isa)});
    const std::vector<HostTensor> ins = {testing::random_tensor(DType::BF16, {c.rows, 64}, 1),
                                         testing::random_tensor(DType::BF16, {64, 48}, 2)};
    for (const DType out : {DType::BF16, DType::F32}) {
      const testing::KernelRun run =
          testing::run_kernel(*device, kMatmul, {rule[0], out}, ins, {{out, {c.rows, 48}, {}}});
      EXPECT_EQ(run.kernel, c.kernel);
      const bool converted = starts_with(run.kernel, "widened ");
      EXPECT_EQ(!converted, c.rows > 8 && multiplies_16_bit(DType::BF16, c.isa));
    }
  }
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
