#include "tessera/passes/split_view.h"

#include "tessera/base/index.h"

#include <algorithm>
#include <map>
#include <set>

namespace tessera {

namespace {

using AxisNames = std::vector<std::string>;
using Cuts = std::vector<std::int64_t>;  // of a dim: the number of parts above each, ascending

class Splitter {
 public:
  Splitter(const Shape& shape, const Sharding& from, const Sharding& to, const Mesh& mesh)
      : shape_(shape), from_(from), to_(to), mesh_(mesh) {}

  /// `parts`: axes may be split. `runs`: axes that are neighbours before and after stay on one dim.
  std::optional<SplitView> run(bool parts, bool runs) {
    parts_.clear();
    runs_ = runs;
    for (const Axis& axis : mesh_.axes()) parts_[axis.name] = {axis.size};
    while (parts && split_axes()) {
    }
    return view();
  }

 private:
  /// After the first part of the first axis, after the next one, and so on.
  Cuts cuts(const AxisNames& axes) const {
    Cuts out;
    std::int64_t above = 1;
    for (const std::string& axis : axes) {
      for (const std::int64_t size : parts_.at(axis)) out.push_back(above *= size);
    }
    return out;
  }

  /// Where a border would split an axis: the axis, and its size before the border. Nothing where it
  /// needs to split none.
  struct Crossing {
    bool possible = true;
    std::string axis;
    std::int64_t before = 0;
  };
  Crossing crossing(std::int64_t border, const AxisNames& axes) const {
    std::int64_t above = 1;
    for (const std::string& axis : axes) {
      std::int64_t before = 1;
      for (const std::int64_t size : parts_.at(axis)) {
        const std::int64_t below = above * size;
        if (border == below) return {};
        if (border < below) {
          const bool nests = border % above == 0 && below % border == 0 && !mesh_.is_time(axis);
          return {nests, axis, before * (border / above)};
        }
        above = below, before *= size;
      }
    }
    return {border % above == 0, {}, 0};
  }

  Cuts all_cuts(std::size_t d) const {
    const Cuts left = cuts(from_.dims[d]), right = cuts(to_.dims[d]);
    std::set<std::int64_t> all(left.begin(), left.end());
    all.insert(right.begin(), right.end());
    return {all.begin(), all.end()};
  }

  /// Splits one axis at a border that crosses it. False if there is none.
  bool split_axes() {
    for (std::size_t d = 0; d < from_.dims.size(); ++d) {
      for (const std::int64_t border : all_cuts(d)) {
        const Crossing left = crossing(border, from_.dims[d]),
                       right = crossing(border, to_.dims[d]);
        if (!left.possible || !right.possible) continue;
        for (const Crossing* one : {&left, &right}) {
          if (one->axis.empty()) continue;
          split_axis(one->axis, one->before);
          return true;
        }
      }
    }
    return false;
  }

  void split_axis(const std::string& axis, std::int64_t before) {
    Cuts sizes;
    std::int64_t above = 1;
    for (const std::int64_t size : parts_.at(axis)) {
      if (above < before && before < above * size) {
        sizes.push_back(before / above);
        sizes.push_back(above * size / before);
      } else {
        sizes.push_back(size);
      }
      above *= size;
    }
    parts_[axis] = std::move(sizes);
  }

  AxisNames names(const std::string& axis) const {
    const Cuts& sizes = parts_.at(axis);
    if (sizes.size() == 1) return {axis};
    AxisNames out;
    std::int64_t before = 1;
    for (const std::int64_t size : sizes) {
      out.push_back(axis_part(axis, before, size));
      before *= size;
    }
    return out;
  }

  /// With their parts, major first.
  AxisNames names(const AxisNames& axes) const {
    AxisNames out;
    for (const std::string& axis : axes) {
      for (std::string& name : names(axis)) out.push_back(std::move(name));
    }
    return out;
  }

  /// True unless this cut ends one axis of the dim and begins another that elsewhere is not behind
  /// it.
  bool within_run(std::int64_t cut, const AxisNames& axes) const {
    const Cuts ends = cuts(axes);
    const AxisNames all = names(axes);
    const auto end = std::find(ends.begin(), ends.end(), cut);
    if (end == ends.end()) return true;
    const auto k = static_cast<std::size_t>(end - ends.begin());
    return k + 1 < all.size() && neighbours(all[k], all[k + 1], from_) &&
           neighbours(all[k], all[k + 1], to_);
  }
  bool neighbours(const std::string& major, const std::string& minor, const Sharding& in) const {
    for (const AxisNames& axes : in.dims) {
      const AxisNames all = names(axes);
      const auto found = std::find(all.begin(), all.end(), major);
      if (found != all.end()) return found + 1 != all.end() && *(found + 1) == minor;
    }
    return false;
  }

  /// The axes of one dim on the dims that it is split into, each where its cut is.
  void spread(const AxisNames& axes, const Cuts& borders, std::vector<AxisNames>& dims) const {
    const Cuts ends = cuts(axes);
    const AxisNames all = names(axes);
    std::size_t next = 0;
    for (std::size_t i = 0; i <= borders.size(); ++i) {
      dims.emplace_back();
      for (; next < all.size() && (i == borders.size() || ends[next] <= borders[i]); ++next)
        dims.back().push_back(all[next]);
    }
  }

  std::vector<Partial> split_sums(const std::vector<Partial>& sums) const {
    Sharding out;
    for (const Partial& p : sums) {
      for (const std::string& name : names(p.axis)) out = out.with_partial(name, p.monoid);
    }
    return out.partial;
  }

  std::optional<SplitView> view() const {
    SplitView out{{}, {{}, split_sums(from_.partial)}, {{}, split_sums(to_.partial)}, {}};
    std::vector<std::int64_t> sizes;
    for (int d = 0; d < shape_.ndim(); ++d) {
      const AxisNames &left = from_.dims[at(d)], &right = to_.dims[at(d)];
      Cuts borders;
      std::int64_t most = 1;
      for (const std::int64_t cut : all_cuts(at(d))) {
        if (shape_[d] % cut != 0) return std::nullopt;
        most = cut;
        const Crossing a = crossing(cut, left), b = crossing(cut, right);
        const bool border = a.possible && b.possible && a.axis.empty() && b.axis.empty();
        if (border && !(runs_ && within_run(cut, left) && within_run(cut, right)))
          borders.push_back(cut);
      }
      // Behind the last border there is a dim of its own only for axes that cross it.
      if (!borders.empty() && borders.back() == most) borders.pop_back();
      std::int64_t before = 1;
      for (const std::int64_t border : borders) {
        sizes.push_back(border / before);
        before = border;
      }
      sizes.push_back(shape_[d] / before);
      spread(left, borders, out.from.dims);
      spread(right, borders, out.to.dims);
    }
    if (sizes.size() > at(Shape::kMaxDims)) return std::nullopt;
    out.shape = Shape(std::span<const std::int64_t>(sizes));
    std::vector<Axis> axes;
    for (const Axis& axis : mesh_.axes()) {
      const AxisNames parts = names(axis.name);
      for (std::size_t i = 0; i < parts.size(); ++i)
        axes.push_back({parts[i], parts_.at(axis.name)[i], axis.level});
    }
    out.mesh = Mesh(std::move(axes));
    return out;
  }

  const Shape& shape_;
  const Sharding &from_, &to_;
  const Mesh& mesh_;
  std::map<std::string, Cuts, std::less<>> parts_;  // of each axis, major first: their sizes
  bool runs_ = false;
};

}  // namespace

std::optional<SplitView> split_view(const Shape& shape, const Sharding& from, const Sharding& to,
                                    const Mesh& mesh) {
  Splitter splitter(shape, from, to, mesh);
  for (const bool parts : {true, false}) {
    for (const bool runs : {false, true}) {
      std::optional<SplitView> out = splitter.run(parts, runs);
      if (!out) continue;
      out->exact = parts && !runs;
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace tessera
