#pragma once
/// All ranks of a mesh with their shards of one value, as plain arrays, and the moves of a
/// redistribution acted out on them. A rank sees nothing but the arrays of its group.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/passes/redistribute.h"

namespace tessera {

struct Array {
  Shape shape;
  std::vector<double> data;
};

inline std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Calls `visit(index, offset)` for every index of `shape`, row-major.
template <typename Visit>
void each_index(const Shape& shape, const Visit& visit) {
  Shape at = Shape::of(shape.ndim(), 0);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    visit(at, static_cast<std::size_t>(i));
    for (int d = shape.ndim(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

inline std::size_t offset_of(const Shape& shape, const Shape& at) {
  std::int64_t out = 0;
  for (int d = 0; d < shape.ndim(); ++d) out = out * shape[d] + at[d];
  return static_cast<std::size_t>(out);
}

/// Part `at` of `n` along `dim`; beyond the end there is garbage.
inline Array cut(const Array& whole, int dim, std::int64_t n, std::int64_t at) {
  Array out{whole.shape, {}};
  out.shape[dim] = (whole.shape[dim] + n - 1) / n;
  each_index(out.shape, [&](Shape index, std::size_t) {
    index[dim] += at * out.shape[dim];
    out.data.push_back(index[dim] < whole.shape[dim] ? whole.data[offset_of(whole.shape, index)]
                                                     : std::nan(""));
  });
  return out;
}

/// Parts joined along `dim` and cut to `size`.
inline Array paste(const std::vector<Array>& parts, int dim, std::int64_t size) {
  Array out{parts[0].shape, {}};
  out.shape[dim] = size;
  each_index(out.shape, [&](Shape index, std::size_t) {
    const std::int64_t chunk = parts[0].shape[dim];
    const Array& part = parts.at(static_cast<std::size_t>(index[dim] / chunk));
    index[dim] %= chunk;
    out.data.push_back(part.data[offset_of(part.shape, index)]);
  });
  return out;
}

class ShardWorld {
 public:
  /// Element i of the whole is i + 1. Parts of a partial value are random and make up the whole.
  ShardWorld(const Shape& shape, Sharding sharding, const Mesh& mesh)
      : shape_(shape), sharding_(std::move(sharding)), mesh_(mesh) {
    for (std::int64_t r = 0; r < mesh_.ranks(); ++r) {
      ranks_.push_back(coordinates(r));
      arrays_.push_back(shard(ranks_.back()));
    }
  }

  /// By rank.
  const std::vector<Array>& arrays() const { return arrays_; }

  void apply(const Move& move) {
    std::vector<Array> after;
    for (std::size_t r = 0; r < ranks_.size(); ++r) after.push_back(result(move, r));
    arrays_ = std::move(after);
    sharding_ = move.after;
  }

  /// "" if every rank holds its shard of the whole and parts of sums make it up; else what is
  /// wrong.
  std::string wrong() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      std::vector<std::string> axes;
      for (const Partial& p : sharding_.partial) axes.push_back(p.axis);
      const Array held = combined(r, axes);
      if (!(held.shape == local_shape(shape_, sharding_, mesh_)))
        return text("rank ", r, " holds ", held.shape, " of ", sharding_);
      std::string out;
      each_index(held.shape, [&](const Shape& at, std::size_t i) {
        const double expected = whole(at, ranks_[r]);
        if (!std::isnan(expected) && held.data[i] != expected)
          out = text("rank ", r, " has ", held.data[i], " for ", expected, " at ", at, " of ",
                     sharding_);
      });
      if (!out.empty()) return out;
    }
    return "";
  }

 private:
  Coordinates coordinates(std::int64_t rank) const {
    Coordinates out;
    for (std::size_t a = mesh_.axes().size(); a-- > 0;) {
      const Axis& axis = mesh_.axes()[a];
      out[axis.name] = 0;
      if (axis.level == Level::Time) continue;  // the first micro-batch
      out[axis.name] = rank % axis.size;
      rank /= axis.size;
    }
    return out;
  }
  std::size_t rank_at(const Coordinates& at) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r] == at) return r;
    }
    fail(Fault::Internal, "no such rank");
  }

  /// The element of the whole that a rank has at a local index; NaN beyond the logical extent.
  double whole(const Shape& at, const Coordinates& rank) const {
    std::int64_t index = 0;
    for (int d = 0; d < shape_.ndim(); ++d) {
      const Extent e = extent(shape_[d], sharding_.dims[static_cast<std::size_t>(d)], mesh_, rank);
      if (at[d] >= e.valid) return std::nan("");
      index = index * shape_[d] + e.start + at[d];
    }
    return static_cast<double>(index + 1);
  }

  Array shard(const Coordinates& rank) const {
    Array out{local_shape(shape_, sharding_, mesh_), {}};
    std::int64_t part = 0, parts = 1;
    for (const Partial& p : sharding_.partial) {
      part = part * mesh_.size(p.axis) + rank.at(p.axis);
      parts *= mesh_.size(p.axis);
    }
    each_index(out.shape, [&](const Shape& at, std::size_t) {
      const double value = whole(at, rank);
      out.data.push_back(std::isnan(value) || parts == 1 ? value : split(value, part, parts));
    });
    return out;
  }
  double split(const double value, std::int64_t part, std::int64_t parts) const {
    const auto random = [&](std::int64_t k) {
      return static_cast<double>(
          scrambled(static_cast<std::uint64_t>(value) * 1000 + static_cast<std::uint64_t>(k)) %
          100);
    };
    if (sharding_.partial[0].monoid == Monoid::Sum) {
      if (part > 0) return random(part);
      double left = value;
      for (std::int64_t k = 1; k < parts; ++k) left -= random(k);
      return left;
    }
    const bool holds = part == static_cast<std::int64_t>(random(-1)) % parts;
    const double away = holds ? 0 : 1 + random(part);
    return sharding_.partial[0].monoid == Monoid::Max ? value - away : value + away;
  }

  static double combine(Monoid monoid, double a, double b) {
    if (monoid == Monoid::Sum) return a + b;
    return (monoid == Monoid::Max) == (a > b) ? a : b;
  }
  static double identity(Monoid monoid) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    return monoid == Monoid::Sum ? 0 : monoid == Monoid::Max ? -kInf : kInf;
  }

  /// The ranks that differ from `rank` on `axes` only, row-major.
  std::vector<std::size_t> group(std::size_t rank, const std::vector<std::string>& axes) const {
    std::vector<Coordinates> all{ranks_[rank]};
    for (const std::string& axis : axes) {
      std::vector<Coordinates> more;
      for (const Coordinates& one : all) {
        const std::int64_t n = mesh_.is_time(axis) ? 1 : mesh_.size(axis);
        for (std::int64_t i = 0; i < n; ++i) {
          more.push_back(one);
          more.back()[axis] = i;
        }
      }
      all = std::move(more);
    }
    std::vector<std::size_t> out;
    for (const Coordinates& one : all) out.push_back(rank_at(one));
    return out;
  }

  Array combined(std::size_t rank, const std::vector<std::string>& axes) const {
    Array out;
    for (const std::size_t member : group(rank, axes)) {
      const Array& part = arrays_[member];
      if (out.data.empty()) {
        out = part;
        continue;
      }
      for (std::size_t i = 0; i < out.data.size(); ++i)
        out.data[i] = combine(sharding_.partial[0].monoid, out.data[i], part.data[i]);
    }
    return out;
  }

  Array cut_all(Array array, int dim, const std::vector<std::string>& axes,
                std::size_t rank) const {
    for (const std::string& axis : axes)
      array = cut(array, dim, mesh_.size(axis), ranks_[rank].at(axis));
    return array;
  }
  /// Pieces of a group (row-major over `axes`), joined minor axis first. `size`: of the result.
  Array join_all(const std::vector<Array>& pieces, int dim, const std::vector<std::string>& axes,
                 std::int64_t size) const {
    std::vector<std::int64_t> extents{size};  // above each axis
    for (const std::string& axis : axes)
      extents.push_back((extents.back() + mesh_.size(axis) - 1) / mesh_.size(axis));
    std::vector<Array> parts = pieces;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const auto n = static_cast<std::size_t>(mesh_.size(axes[k]));
      std::vector<Array> joined;
      for (std::size_t i = 0; i < parts.size(); i += n)
        joined.push_back(paste({parts.begin() + static_cast<std::ptrdiff_t>(i),
                                parts.begin() + static_cast<std::ptrdiff_t>(i + n)},
                               dim, extents[k]));
      parts = std::move(joined);
    }
    return parts[0];
  }

  Array result(const Move& move, std::size_t r) const {
    const std::vector<std::size_t> members = group(r, move.axes);
    std::vector<Array> pieces;
    switch (move.kind) {
      case MoveKind::Slice: return cut_all(arrays_[r], move.to, move.axes, r);
      case MoveKind::MarkPartial: {
        Array out = arrays_[r];
        for (const Partial& p : move.after.partial) {
          if (p.axis == move.axes[0] && ranks_[r].at(p.axis) != 0)
            std::fill(out.data.begin(), out.data.end(), identity(p.monoid));
        }
        return out;
      }
      case MoveKind::AllReduce: return combined(r, move.axes);
      case MoveKind::ReduceScatter: return cut_all(combined(r, move.axes), move.to, move.axes, r);
      case MoveKind::AllGather:
        for (const std::size_t member : members) pieces.push_back(arrays_[member]);
        break;
      case MoveKind::AllToAll:
        for (const std::size_t member : members)
          pieces.push_back(cut_all(arrays_[member], move.to, move.axes, r));
        break;
      case MoveKind::Permute: return permuted(move, r, members);
    }
    return join_all(pieces, move.from, move.axes,
                    local_shape(shape_, move.after, mesh_)[move.from]);
  }

  /// Which shard a rank holds, and which part and copy of it among the ranks of a move.
  std::vector<std::int64_t> position(const Sharding& sharding, const Coordinates& rank,
                                     const std::vector<std::string>& among) const {
    std::vector<std::int64_t> out;
    for (const auto& axes : sharding.dims) {
      out.push_back(0);
      for (const std::string& axis : axes)
        out.back() = out.back() * mesh_.size(axis) + rank.at(axis);
    }
    std::int64_t part = 0, copy = 0;
    for (const std::string& axis : among) {
      if (sharding.dim_of(axis) >= 0) continue;
      std::int64_t& count = sharding.is_partial(axis) ? part : copy;
      count = count * mesh_.size(axis) + rank.at(axis);
    }
    out.push_back(part);
    out.push_back(copy);
    return out;
  }
  Array permuted(const Move& move, std::size_t r, const std::vector<std::size_t>& members) const {
    const auto mine = position(move.after, ranks_[r], move.axes);
    const Array* out = nullptr;
    for (const std::size_t member : members) {
      if (position(sharding_, ranks_[member], move.axes) != mine) continue;
      check(out == nullptr, "two ranks hold what one wants");
      out = &arrays_[member];
    }
    check(out != nullptr, "no rank of the group holds what rank ", r, " wants");
    return *out;
  }

  Shape shape_;
  Sharding sharding_;
  Mesh mesh_;
  std::vector<Coordinates> ranks_;
  std::vector<Array> arrays_;
};

}  // namespace tessera
