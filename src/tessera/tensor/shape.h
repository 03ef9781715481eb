#pragma once
/// Shapes: sizes of dims, outermost first, row-major.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tessera {

/// At most kMaxDims sizes, each >= 0. A plain value without heap storage; also used for offsets and
/// strides in elements.
class Shape {
 public:
  /// Tensors of models have five at most; views whose dims are split where they are sharded
  /// (passes/split_view.h) have one per axis of the mesh, before and after.
  static constexpr int kMaxDims = 14;

  constexpr Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) {
    for (const std::int64_t dim : dims) push_back(dim);
  }
  explicit Shape(std::span<const std::int64_t> dims) {
    for (const std::int64_t dim : dims) push_back(dim);
  }
  /// `ndim` dims of size `fill`.
  static Shape of(int ndim, std::int64_t fill) {
    Shape out;
    for (int i = 0; i < ndim; ++i) out.push_back(fill);
    return out;
  }

  constexpr int ndim() const { return ndim_; }
  constexpr bool empty() const { return ndim_ == 0; }
  constexpr std::int64_t operator[](int dim) const { return dims_[static_cast<std::size_t>(dim)]; }
  constexpr std::int64_t& operator[](int dim) { return dims_[static_cast<std::size_t>(dim)]; }
  /// The size of a dim counted from the end: back(0) is the last.
  constexpr std::int64_t back(int i = 0) const { return (*this)[ndim_ - 1 - i]; }
  void push_back(std::int64_t dim);
  void erase(int dim);

  constexpr const std::int64_t* begin() const { return dims_.data(); }
  constexpr const std::int64_t* end() const { return dims_.data() + ndim_; }
  constexpr std::int64_t* begin() { return dims_.data(); }
  constexpr std::int64_t* end() { return dims_.data() + ndim_; }

  /// Product of the sizes; 1 for a scalar.
  constexpr std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t dim : *this) n *= dim;
    return n;
  }
  /// Row-major strides in elements.
  Shape strides() const;

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.ndim_ != b.ndim_) return false;
    for (int i = 0; i < a.ndim_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, kMaxDims> dims_{};
  int ndim_ = 0;
};

/// "[4,256,768]"
std::string to_text(const Shape& shape);

/// The shape to which numpy's rules broadcast two shapes (aligned at the last dim). Errors: sizes
/// that differ and are not 1.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace tessera
