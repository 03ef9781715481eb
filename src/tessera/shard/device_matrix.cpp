#include "tessera/shard/device_matrix.h"

#include <algorithm>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

std::int64_t ranks_in(const DeviceMatrix& sizes) {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out *= size;
  return out;
}

std::int64_t size_of(const DeviceMatrix& matrix, int dim) {
  return matrix[matrix.size() - 1 - at(dim)];
}

/// Ranks from one coordinate of the dim to the next.
std::int64_t stride_of(const DeviceMatrix& matrix, int dim) {
  std::int64_t out = 1;
  for (int d = 0; d < dim; ++d) out *= size_of(matrix, d);
  return out;
}

std::vector<std::string> words(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> out;
  for (const std::int64_t n : numbers) out.push_back(text(n));
  return out;
}

}  // namespace

std::vector<std::int64_t> group_of(const DeviceMatrix& matrix, const std::vector<int>& dims,
                                   std::int64_t rank) {
  std::int64_t first = rank;
  for (const int d : dims) {
    const std::int64_t stride = stride_of(matrix, d);
    first -= rank / stride % size_of(matrix, d) * stride;
  }
  std::vector<std::int64_t> out{first};
  for (const int d : dims) {
    const std::size_t before = out.size();
    for (std::int64_t i = 1; i < size_of(matrix, d); ++i) {
      for (std::size_t k = 0; k < before; ++k) out.push_back(out[k] + i * stride_of(matrix, d));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<int> TensorLayout::repeated() const {
  std::vector<int> out;
  for (int d = static_cast<int>(matrix.size()); d-- > 0;) {
    const bool used = std::any_of(map.begin(), map.end(), [&](const std::vector<int>& dims) {
      return std::find(dims.begin(), dims.end(), d) != dims.end();
    });
    if (!used) out.push_back(d);
  }
  return out;
}

std::vector<std::int64_t> TensorLayout::splits() const {
  std::vector<std::int64_t> out;
  for (const std::vector<int>& dims : map) {
    std::int64_t n = 1;
    for (const int d : dims) n *= size_of(matrix, d);
    out.push_back(n);
  }
  return out;
}

Shape TensorLayout::slice_shape(const Shape& shape) const {
  require(at(shape.ndim()) == map.size(), "a layout of ", map.size(),
          " dims does not fit a tensor of shape ", shape);
  Shape out = shape;
  const std::vector<std::int64_t> n = splits();
  for (int d = 0; d < shape.ndim(); ++d) {
    require(shape[d] % n[at(d)] == 0, "dim ", d, " of shape ", shape, " is split ", n[at(d)],
            " times, which does not divide it");
    out[d] = shape[d] / n[at(d)];
  }
  return out;
}

std::string to_text(const TensorLayout& layout) {
  std::vector<std::string> dims;
  for (const std::vector<int>& dim : layout.map) {
    std::vector<std::string> parts;
    for (const int d : dim) parts.push_back(text(d));
    dims.push_back(parts.empty()       ? "-1"
                   : parts.size() == 1 ? parts[0]
                                       : text("(", join(parts), ")"));
  }
  return text("(", join(words(layout.matrix)), " | ", join(dims), ")");
}

TensorLayout canonical(const TensorLayout& layout) {
  TensorLayout out;
  std::vector<int> renumbered;  // from the right; -1: dropped
  for (int d = 0, next = 0; d < static_cast<int>(layout.matrix.size()); ++d)
    renumbered.push_back(size_of(layout.matrix, d) == 1 ? -1 : next++);
  for (std::size_t i = 0; i < layout.matrix.size(); ++i) {
    if (layout.matrix[i] == 1) continue;
    out.matrix.push_back(layout.matrix[i]);
    if (!layout.aliases.empty()) out.aliases.push_back(layout.aliases[i]);
  }
  for (const std::vector<int>& dim : layout.map) {
    std::vector<int> kept;
    for (const int d : dim) {
      if (renumbered[at(d)] >= 0) kept.push_back(renumbered[at(d)]);
    }
    out.map.push_back(std::move(kept));
  }
  return out;
}

void split_parts(const TensorLayout& layout, std::size_t dim,
                 const std::vector<std::int64_t>& factors,
                 std::vector<std::vector<std::int64_t>>& parts) {
  if (factors.size() < 2) return;
  std::size_t k = 0;
  std::int64_t left = factors[0];  // of this factor, not cut yet
  for (const int d : layout.map[dim]) {
    std::vector<std::int64_t>& sizes = parts[layout.matrix.size() - 1 - at(d)];
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      while (left == 1 && k + 1 < factors.size()) left = factors[++k];
      if (left > 1 && left < sizes[p] && sizes[p] % left == 0) {
        sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(p) + 1, sizes[p] / left);
        sizes[p] = left;
      }
      if (left % sizes[p] != 0) return;  // it does not divide
      left /= sizes[p];
    }
  }
}

TensorLayout in_parts(const TensorLayout& layout,
                      const std::vector<std::vector<std::int64_t>>& parts) {
  TensorLayout out;
  std::vector<std::vector<int>> places;  // of each dim's parts, from the left
  for (std::size_t i = 0; i < layout.matrix.size(); ++i) {
    places.emplace_back();
    for (std::size_t p = 0; p < parts[i].size(); ++p) {
      places.back().push_back(static_cast<int>(out.matrix.size()));
      out.matrix.push_back(parts[i][p]);
      if (layout.aliases.empty()) continue;
      const std::string& alias = layout.aliases[i];
      out.aliases.push_back(parts[i].size() == 1 ? alias : text(alias, "_", p));
    }
  }
  for (const std::vector<int>& dims : layout.map) {
    out.map.emplace_back();
    for (const int d : dims) {
      for (const int place : places[layout.matrix.size() - 1 - at(d)])
        out.map.back().push_back(static_cast<int>(out.matrix.size()) - 1 - place);
    }
  }
  return out;
}

DeviceLayout::DeviceLayout(DeviceMatrix sizes, std::vector<std::string> aliases)
    : sizes_(std::move(sizes)), aliases_(std::move(aliases)) {
  require(sizes_.size() == aliases_.size(), "a layout has ", sizes_.size(), " sizes but ",
          aliases_.size(), " names (", join(aliases_), "); give each size one");
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    require(sizes_[i] >= 1, "size ", sizes_[i], " of '", aliases_[i],
            "' in a layout; it must be at least 1");
    require(std::count(aliases_.begin(), aliases_.end(), aliases_[i]) == 1, "'", aliases_[i],
            "' names two dims of one layout (", join(aliases_), "); give each its own name");
  }
}

TensorLayout DeviceLayout::of(const std::vector<Dim>& dims) const {
  TensorLayout out{sizes_, {}, aliases_};
  std::set<std::string> seen;
  for (const Dim& dim : dims) {
    std::vector<int> map;
    for (const std::string& alias : dim.aliases) {
      if (alias == "None") continue;
      const auto found = std::find(aliases_.begin(), aliases_.end(), alias);
      require(found != aliases_.end(), "layout has no '", alias, "'; it has ", join(aliases_),
              ", and None for a dim that stays whole");
      require(seen.insert(alias).second, "'", alias,
              "' splits two dims of one tensor; use it once");
      map.push_back(static_cast<int>(aliases_.end() - found) - 1);
    }
    out.map.push_back(std::move(map));
  }
  return out;
}

RefinedMatrix::RefinedMatrix(const std::vector<DeviceMatrix>& matrices) {
  std::set<std::int64_t> cuts{1};
  for (const DeviceMatrix& matrix : matrices) {
    require(ranks_in(matrix) == ranks_in(matrices[0]), "device matrices (",
            join(words(matrices[0])), ") and (", join(words(matrix)), ") number ",
            ranks_in(matrices[0]), " and ", ranks_in(matrix), " ranks; use one number");
    std::int64_t cut = 1;
    for (auto size = matrix.rbegin(); size != matrix.rend(); ++size) cuts.insert(cut *= *size);
  }
  cuts_.assign(cuts.begin(), cuts.end());
  for (std::size_t i = 1; i < cuts_.size(); ++i) {
    const auto made = [&](std::int64_t cut) {
      for (const DeviceMatrix& matrix : matrices) {
        for (std::int64_t d = 0; d < static_cast<std::int64_t>(matrix.size()); ++d) {
          if (stride_of(matrix, static_cast<int>(d)) == cut)
            return text("(", join(words(matrix)), ")");
        }
      }
      return text("(", join(words(matrices[0])), ")");
    };
    require(cuts_[i] % cuts_[i - 1] == 0, "device matrices ", made(cuts_[i]), " and ",
            made(cuts_[i - 1]), " have no common refinement: groups of ", cuts_[i], " and of ",
            cuts_[i - 1], " ranks do not nest; split so that one divides the other");
    sizes_.insert(sizes_.begin(), cuts_[i] / cuts_[i - 1]);
  }
}

std::vector<int> RefinedMatrix::axes_of(const DeviceMatrix& matrix, int dim) const {
  const std::int64_t low = stride_of(matrix, dim), high = low * size_of(matrix, dim);
  std::vector<int> out;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const std::int64_t cut = cuts_[sizes_.size() - 1 - i];  // at the minor end of axis i
    if (low <= cut && cut < high) out.push_back(static_cast<int>(i));
  }
  return out;
}

}  // namespace tessera
