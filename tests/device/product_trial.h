#pragma once
/// Matrix products: those of a class like cpu::PanelGemm, on matrices with gaps behind which no
/// byte may be touched; and the device's, cut among its threads.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/kernel_test.h"
#include "tessera/base/text.h"
#include "tessera/gemm/gemm_shape.h"
#include "tessera/ops/matmul.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera::testing {

/// Bytes that end where a page ends behind which nothing may be touched.
class Fenced {
 public:
  explicit Fenced(std::int64_t bytes) : size_(static_cast<std::size_t>(bytes)) {
    const std::size_t pages = (size_ + kPage - 1) / kPage * kPage;
    whole_ = pages + kPage;
    memory_ = static_cast<unsigned char*>(
        mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + pages, kPage, PROT_NONE);
    std::memset(memory_, 0xFF, pages);  // as floats: not-a-number
    data_ = memory_ + pages - size_;
  }
  ~Fenced() { munmap(memory_, whole_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  unsigned char* data() { return data_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t size_, whole_ = 0;
  unsigned char *memory_ = nullptr, *data_ = nullptr;
};

/// A matrix at strides, not-a-number in the gaps, its last element the last of a page. T: float, or
/// Bf16, to which numbers are rounded.
template <typename T = float>
class ProductMatrix {
 public:
  ProductMatrix(std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t col)
      : rows_(rows),
        cols_(cols),
        row_(row),
        col_(col),
        bytes_(((rows - 1) * row + (cols - 1) * col + 1) * static_cast<std::int64_t>(sizeof(T))) {}
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  T& at(std::int64_t i, std::int64_t j) { return data()[i * row_ + j * col_]; }
  float number(std::int64_t i, std::int64_t j) {
    if constexpr (std::is_same_v<T, float>) return at(i, j);
    return from_bf16(static_cast<std::uint16_t>(at(i, j)));
  }
  template <typename F>
  void set(const F& number) {
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < cols_; ++j) put(at(i, j), number(i, j));
    }
  }
  void fill(std::uint64_t seed) {
    const HostTensor numbers = random_tensor(DType::F32, {rows_, cols_}, seed);
    set([&](std::int64_t i, std::int64_t j) {
      return static_cast<float>(numbers.at(i * cols_ + j));
    });
  }

 private:
  static void put(float& to, float x) { to = x; }
  static void put(cpu::Bf16& to, float x) { to = to_bf16(x); }

  std::int64_t rows_, cols_, row_, col_;
  Fenced bytes_;
};

/// Bits of the way in which a product is tried; all ways are 0 to 7.
enum ProductWay : int { kTurnA = 1, kTurnB = 2, kAdd = 4 };  // kAdd: to what lies there

/// A product and its operands: A and B dense or turned, each with a gap between its rows.
template <typename Gemm>
struct ProductTrial {
  cpu::GemmShape shape;
  ProductMatrix<typename Gemm::In> a, b;
  ProductMatrix<typename Gemm::Out> c;

  ProductTrial(std::int64_t m, std::int64_t n, std::int64_t k, int way)
      : shape{m,
              n,
              k,
              (way & kTurnA) != 0 ? 1 : k + 3,
              (way & kTurnA) != 0 ? m + 5 : 1,
              (way & kTurnB) != 0 ? 1 : n + 7,
              (way & kTurnB) != 0 ? k + 2 : 1,
              n + 9,
              (way & kAdd) != 0},
        a(m, k, shape.a_row, shape.a_col),
        b(k, n, shape.b_row, shape.b_col),
        c(m, n, shape.c_row, 1) {
    a.fill(1), b.fill(2), c.fill(3);
  }

  void run() {
    const Gemm gemm(shape);
    detail::Guarded scratch(gemm.scratch_bytes());
    gemm.execute(a.data(), b.data(), c.data(), scratch.data());
    EXPECT_TRUE(scratch.intact());
  }
};

/// Calls f(sum, magnitudes, result) for every element of a product that was run: the sum in f64 of
/// what lay in `before` (a product that adds up) and of all terms, that of their magnitudes, and
/// what the product made.
template <typename Gemm, typename F>
void each_element(ProductTrial<Gemm>& trial, ProductMatrix<typename Gemm::Out>& before,
                  const F& f) {
  const cpu::GemmShape& s = trial.shape;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = s.accumulate ? before.number(i, j) : 0, magnitudes = std::abs(sum);
      for (std::int64_t l = 0; l < s.k; ++l) {
        const double term = double{trial.a.number(i, l)} * double{trial.b.number(l, j)};
        sum += term, magnitudes += std::abs(term);
      }
      f(sum, magnitudes, double{trial.c.number(i, j)});
    }
  }
}

using ProductSize = std::array<std::int64_t, 3>;  // m, n, k

/// Calls f(trial) for products of those sizes, each in the first `ways` ways.
template <typename Gemm, typename F>
void in_ways(std::span<const ProductSize> sizes, int ways, const F& f) {
  for (const auto& [m, n, k] : sizes) {
    for (int way = 0; way < ways; ++way) {
      SCOPED_TRACE(text(m, " x ", n, " x ", k, ", way ", way));
      ProductTrial<Gemm> trial(m, n, k, way);
      f(trial);
    }
  }
}

/// Expects every element of such products within bound(k, sum, magnitudes) of the sum.
template <typename Gemm, typename Bound>
void expect_sums(std::span<const ProductSize> sizes, int ways, const Bound& bound) {
  in_ways<Gemm>(sizes, ways, [&](ProductTrial<Gemm>& trial) {
    const cpu::GemmShape& s = trial.shape;
    ProductMatrix<typename Gemm::Out> before(s.m, s.n, s.c_row, 1);
    before.fill(3);
    trial.run();
    std::int64_t wrong = 0;
    each_element(trial, before, [&](double sum, double magnitudes, double result) {
      wrong += !(std::abs(result - sum) <= bound(s.k, sum, magnitudes));  // not-a-number is wrong
    });
    EXPECT_EQ(wrong, 0);
  });
}

template <typename Gemm>
void expect_gaps_left_alone() {
  ProductTrial<Gemm> trial(20, 37, 30, 0);
  trial.run();
  for (std::int64_t i = 0; i + 1 < 20; ++i) {
    for (std::int64_t j = 37; j < trial.shape.c_row; ++j)
      EXPECT_TRUE(std::isnan(trial.c.number(i, j))) << i << ", " << j;
  }
}

/// Expects that parts of a product, of at least 96 x 140, have the bits that they have in the
/// whole.
template <typename Gemm>
void expect_bits_of_the_whole(ProductTrial<Gemm> whole) {
  whole.run();
  for (const auto& [top, left, rows, cols] :
       {std::array<std::int64_t, 4>{0, 0, 1, whole.shape.n}, {32, 16, 64, 48}, {17, 90, 33, 50}}) {
    cpu::GemmShape shape = whole.shape;
    shape.m = rows, shape.n = cols, shape.c_row = cols;
    const Gemm gemm(shape);
    detail::Guarded scratch(gemm.scratch_bytes());
    std::vector<typename Gemm::Out> part(static_cast<std::size_t>(rows * cols));
    gemm.execute(&whole.a.at(top, 0), &whole.b.at(0, left), part.data(), scratch.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j)
        ASSERT_EQ(part[static_cast<std::size_t>(i * cols + j)], whole.c.at(top + i, left + j));
    }
  }
}

/// A matmul that the device cuts in a way of its own: at least 1.5 million operations each, which
/// are shared out among three threads.
struct CutMatmul {
  const char *name, *rule;
  Shape a, b, c;
  bool adds = false;  // parts of the contraction are products by themselves
};
/// With the products of a layer of the nanoGPT recipe, a head of 65 columns, and loops of products.
inline const CutMatmul kCutMatmuls[] = {
    {"gradient of weights", "b s n, b s k -> n k", {3, 50, 96}, {3, 50, 130}, {96, 130}},
    {"forward", "b s k, n k -> b s n", {3, 70, 96}, {65, 96}, {3, 70, 65}},
    {"gradient of the input", "b s n, n k -> b s k", {3, 70, 65}, {65, 96}, {3, 70, 96}},
    {"operands change roles", "m k, k n -> n m", {260, 64}, {64, 50}, {50, 260}},
    {"batches, cut each", "b m k, b k n -> b m n", {5, 90, 36}, {5, 36, 50}, {5, 90, 50}},
    {"batches, shared out", "b m k, b k n -> b m n", {12, 60, 36}, {12, 36, 50}, {12, 60, 50}},
    {"a sum of parts", "m k l, l k n -> m n", {60, 6, 50}, {50, 6, 80}, {60, 80}, true},
};

/// Expects the same bits on any number of threads and, of whole numbers, whose sums are exact,
/// those of the reference. Returns the kernel's name.
inline std::string expect_same_on_any_threads(const CutMatmul& matmul, const CpuChoices& choices,
                                              DType in, DType out) {
  const Attrs attrs = {std::string(matmul.rule), out};
  std::string kernel;
  for (const bool whole : {false, true}) {
    std::vector<HostTensor> ins, outs;
    for (const Shape& shape : {matmul.a, matmul.b}) {
      HostTensor& operand = ins.emplace_back(random_tensor(in, shape, 1 + ins.size()));
      for (std::int64_t i = 0; whole && i < operand.numel(); ++i)
        operand.set(i, std::floor(6 * operand.at(i)) + 2);
    }
    for (const int threads : {1, 2, 3, 5}) {
      const std::unique_ptr<Device> device =
          make_cpu_device({.threads = threads, .choices = choices});
      KernelRun run = run_kernel(*device, kMatmul, attrs, ins, {{out, matmul.c, {}}});
      if (kernel.empty()) kernel = run.kernel;
      EXPECT_EQ(run.kernel, kernel) << threads;
      outs.push_back(std::move(run.outs[0]));
      EXPECT_TRUE(std::ranges::equal(outs.back().bytes(), outs.front().bytes())) << threads;
    }
    if (whole) expect_close(outs.front(), evaluate(kMatmul, ins, attrs)[0], {});
  }
  return kernel;
}

}  // namespace tessera::testing
