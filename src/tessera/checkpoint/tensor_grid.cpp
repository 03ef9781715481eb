#include "tessera/checkpoint/tensor_grid.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {

/// Parts of each dim.
Shape parts(const TensorGrid& grid) {
  Shape out;
  for (const auto& cuts : grid.cuts) out.push_back(static_cast<std::int64_t>(cuts.size()) + 1);
  return out;
}

/// The next of all indices from `first` to `last`, both included, row-major; false behind the end.
bool next(Shape& index, const Shape& first, const Shape& last) {
  for (int d = index.ndim(); d-- > 0;) {
    if (++index[d] <= last[d]) return true;
    index[d] = first[d];
  }
  return false;
}

Box cell_at(const TensorGrid& grid, const Shape& index) {
  Box out;
  for (int d = 0; d < index.ndim(); ++d) {
    const auto& cuts = grid.cuts[static_cast<std::size_t>(d)];
    const auto i = static_cast<std::size_t>(index[d]);
    const std::int64_t begin = i == 0 ? 0 : cuts[i - 1];
    out.start.push_back(begin);
    out.extent.push_back((i < cuts.size() ? cuts[i] : grid.shape[d]) - begin);
  }
  return out;
}

std::int64_t offset(const Shape& index, const Shape& strides) {
  std::int64_t out = 0;
  for (int d = 0; d < index.ndim(); ++d) out += index[d] * strides[d];
  return out;
}

Shape minus(const Shape& a, const Shape& b) {
  Shape out = a;
  for (int d = 0; d < a.ndim(); ++d) out[d] -= b[d];
  return out;
}

/// Runs of `common`, which lies in both boxes.
void runs_of(std::int64_t number, const Box& cell, const Box& box, const Box& common,
             const Shape& strides, const std::function<void(const CellRun&)>& visit) {
  const int ndim = common.extent.ndim();
  const Shape in_cell = cell.extent.strides();
  CellRun run{number, offset(minus(common.start, cell.start), in_cell),
              offset(minus(common.start, box.start), strides), 1};
  if (ndim == 0) return visit(run);
  // Dims from `dense` on lie together on both sides.
  int dense = ndim - 1;
  run.count = common.extent[dense];
  while (dense > 0 && common.extent[dense] == cell.extent[dense] && strides[dense - 1] == run.count)
    run.count *= common.extent[--dense];
  const std::int64_t from = run.from, at = run.at;
  const Shape first = Shape::of(dense, 0);
  Shape last, index = first;
  for (int d = 0; d < dense; ++d) last.push_back(common.extent[d] - 1);
  do {
    run.from = from + offset(index, in_cell);
    run.at = at + offset(index, strides);
    visit(run);
  } while (next(index, first, last));
}

}  // namespace

Box shard_box(const Shape& logical, const Sharding& sharding, const Mesh& mesh,
              const Coordinates& at) {
  Box out;
  for (int d = 0; d < logical.ndim(); ++d) {
    const Extent e = extent(logical[d], sharding.dims[static_cast<std::size_t>(d)], mesh, at);
    out.start.push_back(e.start);
    out.extent.push_back(e.valid);
  }
  return out;
}

std::int64_t TensorGrid::cells() const { return shape.numel() == 0 ? 0 : parts(*this).numel(); }

Box TensorGrid::cell(std::int64_t index) const {
  const Shape strides = parts(*this).strides();
  Shape at;
  for (int d = 0; d < shape.ndim(); ++d) {
    at.push_back(index / strides[d]);
    index %= strides[d];
  }
  return cell_at(*this, at);
}

TensorGrid TensorGrid::refined(std::int64_t most) const {
  TensorGrid out = *this;
  if (shape.numel() == 0) return out;
  std::int64_t rest = shape.numel();  // of the largest cell
  const auto widest = [&](int d) {
    const auto& of = out.cuts[static_cast<std::size_t>(d)];
    std::int64_t begin = 0, width = 0;
    for (const std::int64_t cut : of) width = std::max(width, cut - std::exchange(begin, cut));
    return std::max(width, shape[d] - begin);
  };
  for (int d = 0; d < shape.ndim(); ++d) rest = rest / shape[d] * widest(d);
  for (int d = 0; d < shape.ndim() && rest > most; ++d) {
    const std::int64_t width = widest(d), one = rest / width;  // of one index of this dim
    const std::int64_t step = std::clamp<std::int64_t>(most / one, 1, width);
    std::vector<std::int64_t> cuts;
    auto old = out.cuts[static_cast<std::size_t>(d)];
    old.push_back(shape[d]);
    std::int64_t begin = 0;
    for (const std::int64_t end : old) {
      for (std::int64_t cut = begin + step; cut < end; cut += step) cuts.push_back(cut);
      if (end < shape[d]) cuts.push_back(end);
      begin = end;
    }
    out.cuts[static_cast<std::size_t>(d)] = std::move(cuts);
    rest = one * step;
  }
  return out;
}

void each_cell_run(const TensorGrid& grid, const Box& box, const Shape& strides,
                   const std::function<void(const CellRun&)>& visit) {
  Shape first, last;
  for (int d = 0; d < grid.shape.ndim(); ++d) {
    if (box.extent[d] == 0) return;
    const auto& cuts = grid.cuts[static_cast<std::size_t>(d)];
    const auto part = [&](std::int64_t element) {
      return std::upper_bound(cuts.begin(), cuts.end(), element) - cuts.begin();
    };
    first.push_back(part(box.start[d]));
    last.push_back(part(box.start[d] + box.extent[d] - 1));
  }
  const Shape numbers = parts(grid).strides();
  Shape index = first;
  do {
    const Box cell = cell_at(grid, index);
    Box common;
    for (int d = 0; d < index.ndim(); ++d) {
      const std::int64_t begin = std::max(cell.start[d], box.start[d]);
      common.start.push_back(begin);
      common.extent.push_back(
          std::min(cell.start[d] + cell.extent[d], box.start[d] + box.extent[d]) - begin);
    }
    runs_of(offset(index, numbers), cell, box, common, strides, visit);
  } while (next(index, first, last));
}

}  // namespace tessera
