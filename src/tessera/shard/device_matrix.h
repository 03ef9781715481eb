#pragma once
/// MindSpore's words for where a tensor lies: a matrix that numbers all ranks, and per dim of a
/// tensor the dim of the matrix that splits it.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tessera/tensor/shape.h"

namespace tessera {

/// Sizes of a matrix of ranks, which are numbered row by row: the last dim changes fastest.
using DeviceMatrix = std::vector<std::int64_t>;

/// Per dim of a tensor the dims of the matrix that split it, major first, counted from the RIGHT: 0
/// is the last. None: the dim is whole.
using TensorMap = std::vector<std::vector<int>>;

/// The ranks that differ from `rank` in these dims of the matrix (counted from the right) alone, in
/// order; `rank` is one of them.
std::vector<std::int64_t> group_of(const DeviceMatrix& matrix, const std::vector<int>& dims,
                                   std::int64_t rank);

/// A tensor on a matrix.
struct TensorLayout {
  DeviceMatrix matrix;
  TensorMap map;
  std::vector<std::string> aliases = {};  // of the matrix' dims, where they have names

  /// Dims of the matrix that split nothing of the tensor: ranks along them hold the same slice.
  std::vector<int> repeated() const;
  /// How often each dim of the tensor is split.
  std::vector<std::int64_t> splits() const;
  /// What one rank holds. Errors: a dim that its split does not divide, or another number of dims.
  Shape slice_shape(const Shape& shape) const;
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};
/// "(4, 2 | 1, -1)"
std::string to_text(const TensorLayout& layout);
/// Without the dims of the matrix that have size 1.
TensorLayout canonical(const TensorLayout& layout);
/// Splits dims of the matrix so that each part cuts one of the factors (their sizes, major first)
/// that dim `dim` of the tensor consists of: 8 on 4 x 128 becomes 4 and 2. `parts` has those of
/// each dim of the matrix, from the left.
void split_parts(const TensorLayout& layout, std::size_t dim,
                 const std::vector<std::int64_t>& factors,
                 std::vector<std::vector<std::int64_t>>& parts);
/// On the matrix whose dims are split: `parts` has those of each dim, from the left. "dp" in parts
/// of 4 and 2 becomes "dp_0" and "dp_1".
TensorLayout in_parts(const TensorLayout& layout,
                      const std::vector<std::vector<std::int64_t>>& parts);

/// Names for the dims of a matrix, what MindSpore calls a Layout. DeviceLayout({2, 2, 2}, {"dp",
/// "sp", "mp"})("dp", {"sp", "mp"}) is a matrix [m, n], m split by dp, n by sp and then by mp;
/// "None" leaves a dim whole.
class DeviceLayout {
 public:
  /// One dim of a tensor.
  struct Dim {
    std::vector<std::string> aliases;
    Dim(const char* alias) : aliases{alias} {}  // NOLINT: "dp" is a dim
    Dim(std::initializer_list<const char*> names) : aliases(names.begin(), names.end()) {}
  };

  /// Errors: as many names as sizes, no name twice, sizes from 1.
  DeviceLayout(DeviceMatrix sizes, std::vector<std::string> aliases);
  /// Errors: a name that the layout lacks, or that one tensor has twice.
  template <typename... More>
  TensorLayout operator()(Dim first, More... more) const {
    return of({std::move(first), Dim(more)...});
  }
  TensorLayout operator()(Dim a, Dim b) const { return of({std::move(a), std::move(b)}); }
  TensorLayout operator()(Dim a, Dim b, Dim c) const {
    return of({std::move(a), std::move(b), std::move(c)});
  }
  TensorLayout of(const std::vector<Dim>& dims) const;

 private:
  DeviceMatrix sizes_;
  std::vector<std::string> aliases_;
};

/// Matrices of the same ranks, cut so finely that every dim of each is a run of axes: those of
/// (8, 4) and (2, 16) are (2, 4, 4).
class RefinedMatrix {
 public:
  /// Errors: matrices of different numbers of ranks; cuts that do not divide each other, as of (3,
  /// 4) and (4, 3).
  explicit RefinedMatrix(const std::vector<DeviceMatrix>& matrices);

  /// Sizes of the axes, outermost first.
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  /// The axes that dim `dim` of one of the matrices, counted from the right, consists of, outermost
  /// first.
  std::vector<int> axes_of(const DeviceMatrix& matrix, int dim) const;

 private:
  std::vector<std::int64_t> cuts_;  // products of sizes from the right, from 1 up
  std::vector<std::int64_t> sizes_;
};

}  // namespace tessera
