#include "tessera/passes/axis_placements.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {

AxisPlacements without_partials(AxisPlacements on_axes) {
  for (AxisPlacement& on_axis : on_axes) {
    if (is_partial(on_axis)) on_axis = kWhole;
  }
  return on_axes;
}

AxisPlacements with_rows_alone(AxisPlacements on_axes) {
  for (AxisPlacement& on_axis : on_axes) {
    if (is_partial(on_axis) && on_axis != kPartialOne) on_axis = kWhole;
  }
  return on_axes;
}

Axes::Axes(const Strategy& strategy, const Machine& machine) {
  const auto take = [&](std::string_view name) {
    if (find(name) >= 0) return;
    for (const Axis& axis : strategy.mesh.axes()) {
      if (axis.name == name) axes_.push_back(axis);
    }
  };
  for (const std::string& name : strategy.major) take(name);
  for (const bool time : {false, true}) {
    for (const Axis& axis : strategy.mesh.axes()) {
      if ((axis.level == Level::Time) == time) take(axis.name);
    }
  }
  for (const Axis& axis : axes_) {
    prices_.push_back(
        axis.level == Level::Time ? 0 : machine.relative_price(span_of(strategy.mesh, axis.name)));
  }
}

int Axes::find(std::string_view name) const {
  for (int i = 0; i < count(); ++i) {
    if ((*this)[i].name == name) return i;
  }
  return -1;
}

AxisPlacements Axes::whole() const {
  AxisPlacements out;
  for (int i = 0; i < count(); ++i) out.push_back(kWhole);
  return out;
}

AxisPlacements Axes::read(const Sharding& sharding) const {
  AxisPlacements out = whole();
  const auto set = [&](std::string_view name, AxisPlacement on_axis) {
    const int i = find(name);
    if (i < 0) return i;
    AxisPlacement& at = out[static_cast<std::size_t>(i)];
    require(at == kWhole, "sharding ", sharding, " has axis '", name, "' twice");
    at = on_axis;
    return i;
  };
  for (int d = 0; d < sharding.ndim(); ++d) {
    int before = -1;
    for (const std::string& name : sharding.dims[static_cast<std::size_t>(d)]) {
      const int i = set(name, static_cast<AxisPlacement>(d));
      require(i < 0 || i > before, "sharding ", sharding, ": axis '", name,
              "' is minor to one that is major on this mesh; name it before, or change the order");
      if (i >= 0) before = i;
    }
  }
  for (const Partial& p : sharding.partial) set(p.axis, partial_placement(p.monoid));
  return out;
}

Shared<Placement> Axes::write(const AxisPlacements& on_axes, int ndim) const {
  Shared<Placement>& out = known_[{ndim, on_axes}];
  if (out) return out;
  Sharding sharding = Sharding::replicated(ndim);
  for (int i = 0; i < count(); ++i) {
    const AxisPlacement on_axis = on_axes[static_cast<std::size_t>(i)];
    if (on_axis >= 0) sharding = sharding.with((*this)[i].name, on_axis);
    if (is_partial(on_axis)) sharding = sharding.with_partial((*this)[i].name, monoid_of(on_axis));
  }
  return out = Placement{std::move(sharding), Memory::Device};
}

bool Axes::Less::operator()(const std::pair<int, AxisPlacements>& a,
                            const std::pair<int, AxisPlacements>& b) const {
  if (a.first != b.first) return a.first < b.first;
  return std::lexicographical_compare(a.second.begin(), a.second.end(), b.second.begin(),
                                      b.second.end());
}

}  // namespace tessera
