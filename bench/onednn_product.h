/// Matrix products by oneDNN on a team of threads, in f32 or with operands in bf16, for bench
/// programs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using Dim = dnnl::memory::dim;
using DType = dnnl::memory::data_type;

/// Whether oneDNN multiplies bf16 on this processor with instructions made for it.
inline bool multiplies_bf16() {
  constexpr int bf16 = static_cast<int>(dnnl::cpu_isa::avx512_core_bf16);
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & bf16) == bf16;
}

/// Page-aligned numbers of [-0.5, 0.5), so that no product meets denormals.
class Buffer {
 public:
  Buffer(std::size_t n, DType type) : type_(type), data_(allocate(n * size())) {
    const bool wide = size() == sizeof(float);
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < n; ++i) {
      state = state * 1664525u + 1013904223u;
      const float value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      if (wide) {
        std::memcpy(data() + 4 * i, &bits, 4);
      } else {
        const auto upper = static_cast<std::uint16_t>(bits >> 16);  // a bf16, rounded towards zero
        std::memcpy(data() + 2 * i, &upper, 2);
      }
    }
  }

  char* data() const { return data_.get(); }
  char* at(Dim i) const { return data_.get() + static_cast<std::size_t>(i) * size(); }
  double value(Dim i) const {
    std::uint32_t bits = 0;
    std::memcpy(reinterpret_cast<char*>(&bits) + 4 - size(), at(i), size());
    float out;
    std::memcpy(&out, &bits, 4);
    return out;
  }

 private:
  std::size_t size() const { return dnnl::memory::data_type_size(type_); }
  static char* allocate(std::size_t bytes) {
    void* out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (out == nullptr) throw std::bad_alloc();
    return static_cast<char*>(out);
  }
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  DType type_;
  std::unique_ptr<char, Free> data_;
};

/// A matrix, or `batch` of them back to back; element (i, j) is at i * row_stride + j * col_stride.
struct Layout {
  Dim rows, cols, row_stride, col_stride, batch = 1;

  static Layout plain(Dim rows, Dim cols, Dim batch = 1) { return {rows, cols, cols, 1, batch}; }
  Layout transposed() const { return {cols, rows, col_stride, row_stride, batch}; }
  /// Of a part: some rows of the one matrix, or some whole matrices.
  dnnl::memory::desc desc(Dim part, DType type) const {
    if (batch == 1) return {{part, cols}, type, dnnl::memory::dims{row_stride, col_stride}};
    return {{part, rows, cols}, type, dnnl::memory::dims{rows * cols, row_stride, col_stride}};
  }
  Dim parts() const { return batch == 1 ? rows : batch; }
  Dim part_stride() const { return batch == 1 ? row_stride : rows * cols; }
  Dim at(Dim n, Dim i, Dim j) const { return n * rows * cols + i * row_stride + j * col_stride; }
};

enum class PackB { No, Yes };

/// C = A B for layouts fixed in advance, cut over a team by rows of C, or by whole matrices when
/// batched. A and B are of type `in`, C of type `out`; sums are f32.
class Product {
 public:
  Product(const dnnl::engine& engine, int threads, Layout a, Layout b, PackB pack, DType in,
          DType out)
      : engine_(engine),
        a_(a),
        b_(b),
        c_(Layout::plain(a.rows, b.cols, a.batch)),
        in_(in),
        out_(out) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const bool batched = a.batch > 1;
    if (!batched) b_desc_ = b.desc(b.rows, in);
    if (pack == PackB::Yes) b_desc_ = {{b.rows, b.cols}, in, dnnl::memory::format_tag::any};
    for (int t = 0; t < threads; ++t) {
      Part part;
      part.begin = a.parts() * t / threads;
      const Dim n = a.parts() * (t + 1) / threads - part.begin;
      part.a = a.desc(n, in);
      part.c = c_.desc(n, out);
      const dnnl::matmul::primitive_desc pd({part.a, batched ? b.desc(n, in) : b_desc_, part.c},
                                            attr, engine_);
      part.b = pd.weights_desc();
      if (!batched) b_desc_ = part.b;  // the first part's choice of layout binds the others
      part.matmul = dnnl::matmul(pd);
      part.scratch = dnnl::memory(pd.scratchpad_desc(), engine_);
      kernel_ = pd.impl_info_str();
      parts_.push_back(std::move(part));
    }
  }

  double flops() const {
    return 2.0 * static_cast<double>(a_.batch * a_.rows) * static_cast<double>(b_.rows * b_.cols);
  }
  /// oneDNN's name of the code that runs, such as "brg:avx512_core_bf16".
  const std::string& kernel() const { return kernel_; }
  std::size_t packed_size() const { return b_desc_.get_size() / dnnl::memory::data_type_size(in_); }

  /// Packs B with one thread.
  void pack(const Buffer& from, const Buffer& to) const {
    dnnl::stream stream(engine_);
    dnnl::memory source(b_.desc(b_.rows, in_), engine_, from.data());
    dnnl::memory target(b_desc_, engine_, to.data());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
  }

  /// Thread `t`'s part of C; `b` is packed if that was asked for.
  void run(int t, const Buffer& a, const Buffer& b, const Buffer& c) {
    Part& part = parts_[static_cast<std::size_t>(t)];
    char* const from_a = a.at(part.begin * a_.part_stride());
    char* const from_b = b.at(part.begin * (b_.batch == 1 ? 0 : b_.part_stride()));
    char* const to = c.at(part.begin * c_.part_stride());
    dnnl::stream stream(engine_);
    part.matmul.execute(stream, {{DNNL_ARG_SRC, {part.a, engine_, from_a}},
                                 {DNNL_ARG_WEIGHTS, {part.b, engine_, from_b}},
                                 {DNNL_ARG_DST, {part.c, engine_, to}},
                                 {DNNL_ARG_SCRATCHPAD, part.scratch}});
    stream.wait();
  }

  /// Compares a few elements of C with plain sums; `b` is not packed.
  void check(const Buffer& a, const Buffer& b, const Buffer& c) const {
    for (Dim s = 0; s < 7; ++s) {
      const Dim n = (c_.batch - 1) * s / 6, i = (c_.rows - 1) * s / 6, j = (c_.cols - 1) * s / 6;
      double sum = 0, size = 0;
      for (Dim k = 0; k < a_.cols; ++k) {
        const double term = a.value(a_.at(n, i, k)) * b.value(b_.at(n, k, j));
        sum += term;
        size += std::abs(term);
      }
      // f32 keeps 24 bits; even 50,000 sums in a row lose far less than this in practice. A bf16
      // result keeps 8.
      const double rounding = out_ == DType::bf16 ? std::abs(sum) / 256 : 0;
      if (!(std::abs(sum - c.value(c_.at(n, i, j))) <= 1e-5 * size + rounding)) {
        throw std::runtime_error("oneDNN's product (" + kernel_ + ") differs from a plain sum");
      }
    }
  }

 private:
  struct Part {
    Dim begin = 0;
    dnnl::memory::desc a, b, c;
    dnnl::matmul matmul;
    dnnl::memory scratch;
  };
  dnnl::engine engine_;
  Layout a_, b_, c_;
  DType in_, out_;
  dnnl::memory::desc b_desc_;
  std::string kernel_;
  std::vector<Part> parts_;
};

}  // namespace bench
