#include "tessera/passes/dim_by_dim.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {

namespace {

using AxisNames = std::vector<std::string>;

/// True where each dim is cut by one axis at most, which has one size before and after.
bool refined(const SplitView& view) {
  for (std::size_t d = 0; d < view.from.dims.size(); ++d) {
    const AxisNames &from = view.from.dims[d], &to = view.to.dims[d];
    if (from.size() > 1 || to.size() > 1) return false;
    if (!from.empty() && !to.empty() && view.mesh.size(from[0]) != view.mesh.size(to[0]))
      return false;
  }
  return true;
}

class DimByDim {
 public:
  DimByDim(SplitView view, std::int64_t element, bool all_to_all)
      : view_(std::move(view)),
        mesh_(view_.mesh),
        at_(view_.from),
        element_(element),
        all_to_all_(all_to_all) {
    for (int d = 0; d < view_.shape.ndim(); ++d) open_.push_back(d);
  }

  std::optional<Redistribution> run() {
    reduce();
    if (!refined(view_)) {
      gather_all();
    } else {
      while (settle(), !open_.empty()) {
        const std::size_t before = out_.moves.size();
        for (bool any = true; any;) {
          any = cut();
          settle();
          for (; exchange(); any = true) settle();
        }
        gather_unwanted();
        if (out_.moves.size() == before && !open_.empty()) gather(open_.front());
      }
    }
    mark();
    if (!possible_) return std::nullopt;
    out_.view = std::move(view_);
    return std::move(out_);
  }

 private:
  const AxisNames& have(int d) const { return at_.dims[static_cast<std::size_t>(d)]; }
  const AxisNames& want(int d) const { return view_.to.dims[static_cast<std::size_t>(d)]; }
  std::int64_t stored() const { return local_shape(view_.shape, at_, mesh_).numel() * element_; }
  void settle() {
    std::erase_if(open_, [&](int d) { return have(d) == want(d); });
  }

  void add(MoveKind kind, const AxisNames& axes, int from, int to, std::int64_t bytes) {
    for (const std::string& axis : axes) {
      possible_ = possible_ && (kind == MoveKind::Slice || !mesh_.is_time(axis));
      at_ = at_.without(axis);
      if (to >= 0) at_ = at_.with(axis, to);
    }
    out_.moves.push_back({kind, axes, from, to, bytes, at_});
  }
  void slice(const std::string& axis, int d) { add(MoveKind::Slice, {axis}, -1, d, 0); }
  void gather(int d) {
    const std::string axis = have(d).back();
    add(MoveKind::AllGather, {axis}, d, -1, (mesh_.size(axis) - 1) * stored());
  }

  void reduce() {
    AxisNames axes;
    std::int64_t n = 1;
    for (const Partial& p : view_.from.partial) {
      if (view_.to.is_partial(p.axis)) continue;
      axes.push_back(p.axis);
      n *= mesh_.size(p.axis);
    }
    if (!axes.empty()) add(MoveKind::AllReduce, axes, -1, -1, (2 * (n - 1) * stored() + n - 1) / n);
  }

  void mark() {
    for (const Partial& p : view_.to.partial) {
      if (at_.is_partial(p.axis)) continue;
      at_ = at_.with_partial(p.axis, p.monoid);
      out_.moves.push_back({MoveKind::MarkPartial, {p.axis}, -1, -1, 0, at_});
    }
  }

  /// The open dim that is cut by this axis, or -1.
  int holder(const std::string& axis) const {
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](int d) { return !have(d).empty() && have(d)[0] == axis; });
    return found == open_.end() ? -1 : *found;
  }

  bool cut() {
    bool any = false;
    for (const int d : open_) {
      if (!have(d).empty() || want(d).empty() || holder(want(d)[0]) >= 0) continue;
      slice(want(d)[0], d);
      any = true;
    }
    return any;
  }

  bool exchange() {
    bool any = false;
    for (const int d : open_) {
      if (!have(d).empty() || want(d).empty()) continue;
      const std::string axis = want(d)[0];
      const int other = holder(axis);
      if (other < 0) continue;
      any = true;
      if (all_to_all_) {
        const std::int64_t n = mesh_.size(axis);
        add(MoveKind::AllToAll, {axis}, other, d, (n - 1) * (stored() / n));
      } else {
        gather(other);
        slice(axis, d);
      }
    }
    return any;
  }

  void gather_unwanted() {
    for (const int d : open_) {
      if (have(d).empty()) continue;
      const bool wanted = std::any_of(view_.to.dims.begin(), view_.to.dims.end(),
                                      [&](const AxisNames& axes) { return axes == have(d); });
      if (!wanted) gather(d);
    }
  }

  /// All dims become whole and are cut anew.
  void gather_all() {
    for (int d = 0; d < view_.shape.ndim(); ++d) {
      while (!have(d).empty()) gather(d);
    }
    for (int d = 0; d < view_.shape.ndim(); ++d) {
      for (const std::string& axis : want(d)) slice(axis, d);
    }
  }

  SplitView view_;
  Mesh mesh_;
  Sharding at_;
  std::int64_t element_;
  bool all_to_all_;
  bool possible_ = true;
  std::vector<int> open_;  // dims that are not yet as wanted
  Redistribution out_;
};

}  // namespace

std::optional<Redistribution> plan_dim_by_dim(MoveStyle style, const Mesh& mesh, const Shape& shape,
                                              DType dtype, const Sharding& from,
                                              const Sharding& to) {
  if (style == MoveStyle::Least) return std::nullopt;
  std::optional<SplitView> view = split_view(shape, from, to, mesh);
  if (!view || !view->exact) return std::nullopt;
  return DimByDim(*std::move(view), size_of(dtype), style == MoveStyle::DimByDimAllToAll).run();
}

}  // namespace tessera
