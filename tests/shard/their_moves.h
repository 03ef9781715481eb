#pragma once
/// An independent model of MindSpore's inference of tensor redistributions: it shares no code with
/// ours and knows only device matrices and tensor maps. It counts bytes.

#include <algorithm>
#include <set>
#include <utility>

#include "tessera/shard/device_matrix.h"

namespace tessera::test {

/// A tensor on a device matrix: per dim of the tensor the dim of the matrix that cuts it, counted
/// from the left, or -1. Sizes of the matrix' dims multiply to the ranks.
struct Their {
  std::vector<std::int64_t> matrix, shape;
  std::vector<int> map;
};

/// The same layout without dims of size 1 and with every dim of the tensor cut by one dim at most:
/// a dim that several cut is split, as (d1, d2, ..., rest).
inline Their their_layout(const TensorLayout& layout, const std::vector<std::int64_t>& shape) {
  Their out;
  std::vector<int> renumbered;
  for (const std::int64_t size : layout.matrix) {
    renumbered.push_back(size == 1 ? -1 : static_cast<int>(out.matrix.size()));
    if (size > 1) out.matrix.push_back(size);
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t rest = shape[d];
    for (const int from_right : layout.map[d]) {
      const int dim = renumbered[layout.matrix.size() - 1 - static_cast<std::size_t>(from_right)];
      if (dim < 0) continue;
      const std::int64_t size = out.matrix[static_cast<std::size_t>(dim)];
      rest /= size;
      out.shape.push_back(size);
      out.map.push_back(dim);
    }
    out.shape.push_back(rest);
    out.map.push_back(-1);
  }
  return out;
}

/// Where dims end, counted from the minor end: (4, 8) ends at 8 and 32.
inline std::set<std::int64_t> ends_of(const std::vector<std::int64_t>& sizes) {
  std::set<std::int64_t> out;
  std::int64_t end = 1;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) out.insert(end *= *size);
  return out;
}

/// `size`, whose minor end is at `low`, split at these ends, major first; none if they do not nest.
inline std::vector<std::int64_t> split_at(std::int64_t size, std::int64_t low,
                                          const std::set<std::int64_t>& ends) {
  std::vector<std::int64_t> out;
  std::int64_t before = low;
  for (const std::int64_t end : ends) {
    if (end <= low || end > low * size) continue;
    if (end % before != 0) return {};
    if (end != before) out.insert(out.begin(), end / before);
    before = end;
  }
  return out;
}

/// The layout with its matrix split at these ends, and every dim of the tensor that such a dim
/// cuts along with it. False if they do not nest.
inline bool refine_matrix(Their& layout, const std::set<std::int64_t>& ends) {
  Their out;
  std::vector<std::vector<int>> parts(layout.matrix.size());
  std::int64_t low = 1;
  for (const std::int64_t size : layout.matrix) low *= size;
  for (std::size_t i = 0; i < layout.matrix.size(); ++i) {
    low /= layout.matrix[i];
    const std::vector<std::int64_t> sizes = split_at(layout.matrix[i], low, ends);
    if (sizes.empty()) return false;
    for (const std::int64_t size : sizes) {
      parts[i].push_back(static_cast<int>(out.matrix.size()));
      out.matrix.push_back(size);
    }
  }
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    if (layout.map[d] < 0) {
      out.shape.push_back(layout.shape[d]);
      out.map.push_back(-1);
      continue;
    }
    std::int64_t rest = layout.shape[d];
    for (const int part : parts[static_cast<std::size_t>(layout.map[d])]) {
      rest /= out.matrix[static_cast<std::size_t>(part)];
      out.shape.push_back(out.matrix[static_cast<std::size_t>(part)]);
      out.map.push_back(part);
    }
    if (rest == 1) continue;
    out.shape.push_back(rest);
    out.map.push_back(-1);
  }
  layout = std::move(out);
  return true;
}

/// The layout with its shape split at these ends. A dim of the matrix that crosses one of them is
/// split too: (8) over (4, 128) into 4 and 2. False if that does not go.
inline bool refine_shape(Their& layout, const std::set<std::int64_t>& ends) {
  std::int64_t low = 1;
  for (const std::int64_t size : layout.shape) low *= size;
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    low /= layout.shape[d];
    const std::vector<std::int64_t> sizes = split_at(layout.shape[d], low, ends);
    if (sizes.empty() && layout.shape[d] > 1) return false;
    if (sizes.size() < 2) continue;
    Their out{layout.matrix, {}, {}};
    for (std::size_t k = 0; k < layout.shape.size(); ++k) {
      if (k != d) {
        out.shape.push_back(layout.shape[k]);
        out.map.push_back(layout.map[k]);
        continue;
      }
      out.shape.insert(out.shape.end(), sizes.begin(), sizes.end());
      out.map.insert(out.map.end(), sizes.size(), -1);
    }
    if (layout.map[d] >= 0) {
      const auto cutter = static_cast<std::size_t>(layout.map[d]);
      std::int64_t left = layout.matrix[cutter];
      std::vector<std::int64_t> parts;
      for (const std::int64_t size : sizes) {
        if (left == 1) break;
        if (left % size != 0 && size % left != 0) return false;
        parts.push_back(std::min(left, size));
        left /= parts.back();
      }
      const int more = static_cast<int>(parts.size()) - 1;
      for (int& dim : out.map) {
        if (dim > layout.map[d]) dim += more;
      }
      for (std::size_t k = 0; k < parts.size(); ++k)
        out.map[d + k] = layout.map[d] + static_cast<int>(k);
      out.matrix.erase(out.matrix.begin() + static_cast<std::ptrdiff_t>(cutter));
      out.matrix.insert(out.matrix.begin() + static_cast<std::ptrdiff_t>(cutter), parts.begin(),
                        parts.end());
    }
    layout = std::move(out);
    return refine_shape(layout, ends);
  }
  return true;
}

/// Both layouts on one matrix and one shape. False: there is no common refinement.
inline bool refine(Their& a, Their& b) {
  for (int round = 0; round < 64; ++round) {
    const Their before_a = a, before_b = b;
    std::set<std::int64_t> ends = ends_of(a.matrix);
    ends.merge(ends_of(b.matrix));
    if (!refine_matrix(a, ends) || !refine_matrix(b, ends)) return false;
    ends = ends_of(a.shape);
    ends.merge(ends_of(b.shape));
    if (!refine_shape(a, ends) || !refine_shape(b, ends)) return false;
    const auto drop_ones = [](Their& layout) {
      for (std::size_t d = layout.shape.size(); d-- > 0;) {
        if (layout.shape[d] != 1) continue;
        layout.shape.erase(layout.shape.begin() + static_cast<std::ptrdiff_t>(d));
        layout.map.erase(layout.map.begin() + static_cast<std::ptrdiff_t>(d));
      }
    };
    drop_ones(a), drop_ones(b);
    const auto same = [](const Their& x, const Their& y) {
      return x.matrix == y.matrix && x.shape == y.shape && x.map == y.map;
    };
    if (same(a, before_a) && same(b, before_b)) return a.matrix == b.matrix && a.shape == b.shape;
  }
  return false;
}

/// Bytes of f32 that each rank receives when the layout `from` becomes `to`.
inline std::int64_t their_bytes(const TensorLayout& from_layout, const TensorLayout& to_layout,
                                const std::vector<std::int64_t>& shape, bool all_to_all) {
  Their from = their_layout(from_layout, shape), to = their_layout(to_layout, shape);
  const Their whole = from;
  std::int64_t held = 4, bytes = 0;  // of the slice that a rank holds
  for (const std::int64_t size : whole.shape) held *= size;
  for (const int dim : whole.map) {
    if (dim >= 0) held /= whole.matrix[static_cast<std::size_t>(dim)];
  }
  if (!refine(from, to)) {  // all of it is gathered, and cut anew
    for (const int dim : whole.map) {
      if (dim < 0) continue;
      const std::int64_t n = whole.matrix[static_cast<std::size_t>(dim)];
      bytes += (n - 1) * held;
      held *= n;
    }
    return bytes;
  }
  std::vector<int> at = from.map;
  const std::vector<int>& want = to.map;
  std::vector<bool> open(at.size(), true);
  const auto size_of = [&](int dim) { return from.matrix[static_cast<std::size_t>(dim)]; };
  const auto holder = [&](int dim) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (open[i] && at[i] == dim) return static_cast<int>(i);
    }
    return -1;
  };
  const auto gather = [&](std::size_t i) {
    bytes += (size_of(at[i]) - 1) * held;
    held *= size_of(at[i]);
    at[i] = -1;
  };
  const auto cut = [&](std::size_t i) {
    at[i] = want[i];
    held /= size_of(want[i]);
    open[i] = false;
  };
  const auto left = [&] {
    for (std::size_t i = 0; i < at.size(); ++i) open[i] = open[i] && at[i] != want[i];
    return std::count(open.begin(), open.end(), true);
  };
  while (left() > 0) {
    bool any = false;
    for (bool round = true; round;) {
      round = false;
      for (std::size_t i = 0; i < at.size(); ++i) {  // cut what nobody holds
        if (!open[i] || at[i] >= 0 || want[i] < 0 || holder(want[i]) >= 0) continue;
        cut(i);
        round = true;
      }
      for (bool again = true; again;) {  // exchange what another dim holds
        again = false;
        for (std::size_t i = 0; i < at.size(); ++i) {
          if (!open[i] || at[i] >= 0 || want[i] < 0) continue;
          const int other = holder(want[i]);
          if (other < 0) continue;
          const auto o = static_cast<std::size_t>(other);
          if (all_to_all) {
            bytes += held / size_of(want[i]) * (size_of(want[i]) - 1);
            at[o] = -1;
            at[i] = want[i];
            open[i] = false;
          } else {
            gather(o);
            cut(i);
          }
          again = round = true;
        }
        left();
      }
      any = any || round;
    }
    for (std::size_t i = 0; i < at.size(); ++i) {  // gather what nobody wants
      if (!open[i] || at[i] < 0 || std::find(want.begin(), want.end(), at[i]) != want.end())
        continue;
      gather(i);
      any = true;
    }
    if (any) continue;
    for (std::size_t i = 0; i < at.size(); ++i) {  // axes change places: gather the first one
      if (!open[i]) continue;
      gather(i);
      break;
    }
  }
  return bytes;
}

}  // namespace tessera::test
