#pragma once
/// One product of a class like cpu::PanelGemm on matrices with gaps, behind which no byte may be
/// touched.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "device/kernel_test.h"
#include "tessera/device/cpu/gemm_shape.h"
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

/// A product and its operands: A and B dense or turned, each with a gap between its rows.
template <typename Gemm>
struct ProductTrial {
  cpu::GemmShape shape;
  ProductMatrix<typename Gemm::In> a, b;
  ProductMatrix<typename Gemm::Out> c;

  ProductTrial(std::int64_t m, std::int64_t n, std::int64_t k, bool turn_a, bool turn_b,
               bool accumulate)
      : shape{m,
              n,
              k,
              turn_a ? 1 : k + 3,
              turn_a ? m + 5 : 1,
              turn_b ? 1 : n + 7,
              turn_b ? k + 2 : 1,
              n + 9,
              accumulate},
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

}  // namespace tessera::testing
