#pragma once
/// A tensor divided into cells by cuts across its dims: how checkpoints store one that several
/// ranks hold, or that is larger than a file.

#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/tensor/sharding.h"

namespace tessera {

/// Elements `start` to `start + extent` of each dim.
struct Box {
  Shape start, extent;
  static Box whole(const Shape& shape) { return {Shape::of(shape.ndim(), 0), shape}; }
  friend bool operator==(const Box&, const Box&) = default;
};

/// The part of a tensor that the rank at `at` holds, without padding.
Box shard_box(const Shape& logical, const Sharding& sharding, const Mesh& mesh,
              const Coordinates& at);

struct TensorGrid {
  Shape shape;  // of the tensor, or of its elements in one row
  /// Per dim the first element of each part but the first: ascending, above 0 and below the size.
  std::vector<std::vector<std::int64_t>> cuts;

  static TensorGrid whole(const Shape& shape) {
    return {shape, std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(shape.ndim()))};
  }
  /// Cells are numbered row-major; none where the tensor has no elements.
  std::int64_t cells() const;
  Box cell(std::int64_t index) const;
  /// With more cuts, so that no cell has more than `most` elements.
  TensorGrid refined(std::int64_t most) const;
  friend bool operator==(const TensorGrid&, const TensorGrid&) = default;
};

/// Elements that lie together in a cell, row-major, and in the memory of a box.
struct CellRun {
  std::int64_t cell = 0, from = 0;  // the cell, and the place in it
  std::int64_t at = 0, count = 0;   // the place in the memory of the box
};

/// Calls `visit` for all runs of a box, cell by cell, in the order of each cell. `strides` are
/// those of the box's memory, whose last dim is dense.
void each_cell_run(const TensorGrid& grid, const Box& box, const Shape& strides,
                   const std::function<void(const CellRun&)>& visit);

}  // namespace tessera
