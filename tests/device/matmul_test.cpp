#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>

#include "device/kernel_test.h"
#include "tessera/device/cpu/matmul.h"
#include "tessera/gemm/onednn.h"
#include "tessera/ops/matmul.h"

namespace tessera {
namespace {

using testing::expect_like_reference;
using testing::KernelSetting;
using testing::random_tensor;

struct ProductCase {
  const char *name, *rule;
  Shape a, b;
  const char* kernel = "onednn:matmul";
};

const ProductCase kProductCases[] = {
    {"row-major", "m k, k n -> m n", {32, 64}, {64, 48}},
    {"odd sizes", "m k, k n -> m n", {37, 19}, {19, 53}},
    {"weights stored [out, in]", "b s k, n k -> b s n", {3, 17, 40}, {56, 40}},
    {"gradient of the weights: rows and contraction merge",
     "b s n, b s k -> n k",
     {3, 17, 40},
     {3, 17, 24}},
    {"gradient of the input", "b s n, n k -> b s k", {3, 17, 40}, {40, 24}},
    {"the result is transposed: operands change roles", "m k, k n -> n m", {32, 16}, {16, 40}},
    {"both transposed", "k m, n k -> m n", {20, 33}, {45, 20}},
    {"contraction of one", "m k, k n -> m n", {33, 1}, {1, 21}},
    {"one column", "m k, k n -> m n", {50, 31}, {31, 1}},
    {"one row", "m k, n k -> m n", {1, 31}, {50, 31}},
    {"one row and one column", "m k, k n -> m n", {1, 100}, {100, 1}},
    {"one number", "m k, k n -> m n", {1, 1}, {1, 1}},
    {"a vector", "b s k, k -> b s", {4, 9, 70}, {70}},
    {"outer product", "m, n -> m n", {40}, {30}},
    {"a batch dim", "b m k, b k n -> b m n", {5, 20, 30}, {5, 30, 24}},
    {"many small batches", "b m k, b n k -> b m n", {64, 8, 16}, {64, 8, 16}},
    {"heads inside rows: scores", "b s g e, b t g e -> b g s t", {2, 24, 3, 16}, {2, 40, 3, 16}},
    {"heads inside rows: values", "b g s t, b t g e -> b s g e", {2, 3, 24, 40}, {2, 40, 3, 16}},
    {"grouped queries", "b s g r e, b t g e -> b g r s t", {2, 9, 2, 3, 16}, {2, 11, 2, 16}},
    {"grouped values: a sum over heads and rows",
     "b g r s t, b s g r e -> b t g e",
     {2, 2, 3, 9, 11},
     {2, 9, 2, 3, 16}},
    {"rows that do not merge", "b s k, k n -> s b n", {6, 10, 32}, {32, 20}},
    {"a contraction in many parts", "m k l, l k n -> m n", {20, 6, 16}, {16, 6, 24}},
    {"columns that do not merge", "m k, n l k -> l m n", {20, 32}, {6, 18, 32}},
    {"rows of 4 KiB: cut by columns even for one thread", "m k, k n -> m n", {64, 32}, {32, 1024}},
    {"a long contraction: the same", "m k, k n -> m n", {8, 16400}, {16400, 40}},
    {"tall", "m k, n k -> m n", {1000, 16}, {20, 16}},
    {"wide", "m k, n k -> m n", {24, 32}, {3001, 32}},
    {"wider than one call of a thread", "m k, n k -> m n", {9, 16}, {9000, 16}},
    {"the same, rows apart", "m k, k n -> m n", {64, 8}, {8, 9001}},
    {"dims of size one anywhere", "a m k, a k n -> m a n", {1, 30, 20}, {1, 20, 10}},
    {"one row, large weights", "b s k, n k -> b s n", {1, 1, 300}, {301, 300}, "hwy:few_rows"},
    {"two rows, odd sizes", "m k, n k -> m n", {2, 259}, {259, 259}, "hwy:few_rows"},
    {"three rows", "m k, n k -> m n", {3, 515}, {131, 515}, "hwy:few_rows"},
    {"four rows", "m k, n k -> m n", {4, 64}, {1031, 64}, "hwy:few_rows"},
    {"five rows, a contraction of less than a vector",
     "m k, n k -> m n",
     {5, 7},
     {9500, 7},
     "hwy:few_rows"},
    {"six rows", "m k, n k -> m n", {6, 300}, {300, 300}, "hwy:few_rows"},
    {"seven rows, few weights of long rows",
     "m k, n k -> m n",
     {7, 40000},
     {3, 40000},
     "hwy:few_rows"},
    {"eight rows", "b s k, n k -> b s n", {4, 2, 257}, {258, 257}, "hwy:few_rows"},
    {"nine rows are not few", "m k, n k -> m n", {9, 300}, {300, 300}},
    {"few rows, weights stored [in, out]", "m k, k n -> m n", {2, 300}, {300, 300}},
    {"dot products of rows: plain loops are as good",
     "b s e, b s e -> b s",
     {4, 5, 8},
     {4, 5, 8},
     "reference"},
};

/// Sums of k products of numbers below 1: each rounding is 2^-24 of a partial sum that is at most
/// k.
testing::Tolerance tolerance(std::int64_t contraction) {
  return {1e-6, 3e-8 * static_cast<double>(contraction) + 1e-6};
}

/// Large enough products are our own on some processors: tile_matmul_test and panels_test say
/// which.
std::string library_kernel(const std::string& kernel) {
  const bool own = machine_choices().isa == Isa::Amx    ? kernel == "amx:matmul"
                   : machine_choices().isa == Isa::Avx2 ? kernel == "hwy:matmul"
                                                        : false;
  return own ? "onednn:matmul" : kernel;
}

using Devices = std::array<std::unique_ptr<Device>, 2>;

Devices with_and_without_amx(int threads) {
  return {
      make_cpu_device({.threads = threads}),
      make_cpu_device({.threads = threads, .choices = machine_choices().at_most(Isa::Avx512Bf16)})};
}

TEST(Matmul, EqualsTheReference) {
  for (const int threads : {1, 2, 3}) {
    const Devices devices = with_and_without_amx(threads);
    for (const ProductCase& c : kProductCases) {
      SCOPED_TRACE(text(c.name, ", ", threads, " threads"));
      const Attrs rule = {std::string(c.rule)};
      const std::vector<HostTensor> ins = {random_tensor(DType::F32, c.a, 1),
                                           random_tensor(DType::F32, c.b, 2)};
      const testing::Tolerance close = tolerance(c.a.numel());
      for (const std::unique_ptr<Device>& each : devices) {
        const std::string kernel = expect_like_reference(*each, kMatmul, rule, ins, close);
        EXPECT_EQ(library_kernel(kernel), c.kernel);
      }
    }
  }
}

/// The same products added onto a value, which lies in the result's place or elsewhere.
TEST(Matmul, AddsOntoAValue) {
  for (const int threads : {1, 3}) {
    const Devices devices = with_and_without_amx(threads);
    for (const ProductCase& c : kProductCases) {
      for (const DType dtype : {DType::F32, DType::BF16}) {
        SCOPED_TRACE(text(c.name, ", ", threads, " threads, ", dtype));
        const Attrs attrs = {std::string(c.rule), DType::F32};
        std::vector<HostTensor> ins = {random_tensor(dtype, c.a, 1), random_tensor(dtype, c.b, 2)};
        const TensorTypes types = testing::result_types(kMatmul, attrs, ins);
        ins.push_back(random_tensor(DType::F32, types[0].shape, 3));
        for (const std::unique_ptr<Device>& each : devices) {
          for (const int in_place : {-1, 2}) {
            testing::KernelSetting setting;
            setting.in_place = in_place;
            EXPECT_NE(
                expect_like_reference(*each, kMatmul, attrs, ins, tolerance(c.a.numel()), setting),
                "hwy:few_rows");
          }
        }
      }
    }
  }
}

/// The same products of bf16: sums in f32, whichever kernel makes them, and a bf16 result is
/// rounded once, which is half of the last of its 8 bits.
TEST(Matmul, OfBf16EqualsTheReference) {
  for (const int threads : {1, 3}) {
    const Devices devices = with_and_without_amx(threads);
    for (const ProductCase& c : kProductCases) {
      const std::vector<HostTensor> ins = {random_tensor(DType::BF16, c.a, 1),
                                           random_tensor(DType::BF16, c.b, 2)};
      for (const DType out : {DType::BF16, DType::F32}) {
        SCOPED_TRACE(text(c.name, ", ", threads, " threads, result ", out));
        testing::Tolerance close = tolerance(c.a.numel());
        if (out == DType::BF16) close.relative = 0x1p-8;
        for (const std::unique_ptr<Device>& each : devices)
          expect_like_reference(*each, kMatmul, {std::string(c.rule), out}, ins, close);
      }
    }
  }
}

TEST(Matmul, OfFewRowsGivesTheSameBitsWithAnyNumberOfThreads) {
  const Attrs rule = {std::string("m k, n k -> m n")};
  for (const std::int64_t rows : {1, 2, 5, 8}) {
    const std::vector<HostTensor> ins = {random_tensor(DType::F32, {rows, 770}, 1),
                                         random_tensor(DType::F32, {519, 770}, 2)};
    std::string first;
    for (const int threads : {1, 2, 3, 7}) {
      const std::unique_ptr<Device> device = make_cpu_device({threads, -1});
      const testing::KernelRun run = testing::run_kernel(*device, kMatmul, rule, ins,
                                                         testing::result_types(kMatmul, rule, ins));
      EXPECT_EQ(run.kernel, "hwy:few_rows");
      const std::string bits = hash128_text(run.outs[0].bytes());
      if (first.empty()) first = bits;
      EXPECT_EQ(bits, first) << rows << " rows, " << threads << " threads";
    }
  }
}

TEST(Matmul, LargeEnoughForEveryThread) {
  const ProductCase cases[] = {
      {"columns", "b s k, n k -> b s n", {4, 64, 128}, {384, 128}},
      {"rows", "m k, n k -> m n", {1500, 128}, {70, 128}},
      {"weights' gradient", "b s n, b s k -> n k", {4, 64, 384}, {4, 64, 128}},
      {"batches", "b s g e, b t g e -> b g s t", {2, 64, 6, 32}, {2, 64, 6, 32}},
      {"odd", "m k, k n -> m n", {131, 127}, {127, 257}},
  };
  for (const auto& [threads, tiles] : {std::pair{2, false}, {4, false}, {2, true}, {4, true}}) {
    const std::unique_ptr<Device> device =
        make_cpu_device({.threads = threads,
                         .choices = machine_choices().at_most(tiles ? Isa::Amx : Isa::Avx512Bf16)});
    for (const ProductCase& c : cases) {
      SCOPED_TRACE(text(c.name, ", ", threads, " threads, tiles ", tiles));
      const std::vector<HostTensor> ins = {random_tensor(DType::F32, c.a, 1),
                                           random_tensor(DType::F32, c.b, 2)};
      expect_like_reference(*device, kMatmul, {std::string(c.rule)}, ins, {1e-6, 1e-4});
    }
  }
}

TEST(Matmul, OperandsMayLieAtStrides) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  const std::vector<HostTensor> ins = {random_tensor(DType::F32, {2, 9, 3, 16}, 1),
                                       random_tensor(DType::F32, {2, 11, 3, 16}, 2)};
  KernelSetting setting;
  // As slices of one [b, s, 3 * heads * e] projection.
  setting.strides = {{9 * 144, 144, 16, 1}, {11 * 144, 144, 16, 1}};
  EXPECT_EQ(expect_like_reference(*device, kMatmul, {std::string("b s g e, b t g e -> b g s t")},
                                  ins, {1e-6, 1e-5}, setting),
            "onednn:matmul");
  // The plain loops read them too.
  const std::vector<HostTensor> small = {random_tensor(DType::F32, {4, 5, 8}, 1),
                                         random_tensor(DType::F32, {4, 5, 8}, 2)};
  setting.strides = {{100, 20, 1}, {}};
  EXPECT_EQ(expect_like_reference(*device, kMatmul, {std::string("b s e, b s e -> b s")}, small,
                                  {1e-6, 1e-5}, setting),
            "reference");
}

TEST(Matmul, OtherDtypesAreComputedByTheReference) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  const std::vector<HostTensor> ins = {random_tensor(DType::F64, {8, 16}, 1),
                                       random_tensor(DType::F64, {16, 24}, 2)};
  EXPECT_EQ(expect_like_reference(*device, kMatmul, {std::string("m k, k n -> m n")}, ins,
                                  {1e-12, 1e-12}),
            "reference");
}

TEST(Gemm, PackedWeightsGiveTheSameProduct) {
  for (const std::int64_t n : {48, 100, 257}) {
    const std::int64_t m = 40, k = 70;
    const HostTensor a = random_tensor(DType::F32, {m, k}, 1),
                     b = random_tensor(DType::F32, {n, k}, 2);
    const cpu::GemmShape shape{m, n, k, k, 1, 1, k, n, false};
    const cpu::Gemm plain(shape), packed(shape, cpu::Weights::Packed);
    testing::detail::Guarded weights(packed.packed_bytes()),
        scratch(std::max(plain.scratch_bytes(), packed.scratch_bytes()));
    HostTensor x(DType::F32, {m, n}), y(DType::F32, {m, n});
    plain.execute(a.data<float>(), b.data<float>(), x.data<float>(), scratch.data());
    packed.pack(b.data<float>(), weights.data(), scratch.data());
    packed.execute(a.data<float>(), weights.data(), y.data<float>(), scratch.data());
    EXPECT_TRUE(weights.intact() && scratch.intact());
    testing::expect_close(y, x, {1e-6, 1e-5});
  }
}

TEST(Gemm, Accumulates) {
  const HostTensor a = random_tensor(DType::F32, {20, 30}, 1),
                   b = random_tensor(DType::F32, {30, 40}, 2);
  HostTensor once(DType::F32, {20, 40}), twice(DType::F32, {20, 40});
  cpu::GemmShape shape{20, 40, 30, 30, 1, 40, 1, 40, false};
  const cpu::Gemm set(shape);
  shape.accumulate = true;
  const cpu::Gemm add(shape);
  testing::detail::Guarded scratch(std::max(set.scratch_bytes(), add.scratch_bytes()));
  set.execute(a.data<float>(), b.data<float>(), once.data<float>(), scratch.data());
  set.execute(a.data<float>(), b.data<float>(), twice.data<float>(), scratch.data());
  add.execute(a.data<float>(), b.data<float>(), twice.data<float>(), scratch.data());
  for (std::int64_t i = 0; i < once.numel(); ++i) once.set(i, 2 * once.at(i));
  testing::expect_close(twice, once, {1e-6, 1e-5});
}

}  // namespace
}  // namespace tessera
