#pragma once
/// How a value is placed on each axis of the mesh: placements as propagation thinks of them, one
/// axis at a time.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/shared.h"
#include "tessera/base/small_vector.h"
#include "tessera/ir/strategy.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// The dim that the axis shards, or:
using AxisPlacement = std::int8_t;
inline constexpr AxisPlacement kWhole = -1, kPartialSum = -2, kPartialMax = -3, kPartialMin = -4,
                               kPartialOne = -5;
constexpr bool is_partial(AxisPlacement on_axis) { return on_axis <= kPartialSum; }
constexpr AxisPlacement partial_placement(Monoid monoid) {
  return static_cast<AxisPlacement>(kPartialSum - static_cast<int>(monoid));
}
/// What linear ops may read unfinished.
constexpr bool is_sum(AxisPlacement on_axis) {
  return on_axis == kPartialSum || on_axis == kPartialOne;
}
/// The monoid of a partial value.
constexpr Monoid monoid_of(AxisPlacement on_axis) {
  return static_cast<Monoid>(kPartialSum - on_axis);
}

/// Per axis, in the order of Axes.
using AxisPlacements = SmallVector<AxisPlacement, 8>;
AxisPlacements without_partials(AxisPlacements on_axes);
/// The same, but for those of Monoid::One.
AxisPlacements with_rows_alone(AxisPlacements on_axes);

/// The axes of a mesh in the order in which they meet on a dim, major first.
class Axes {
 public:
  /// Errors: the strategy names an axis twice.
  explicit Axes(const Strategy& strategy, const Machine& machine = {});

  int count() const { return static_cast<int>(axes_.size()); }
  const Axis& operator[](int i) const { return axes_[static_cast<std::size_t>(i)]; }
  bool is_time(int i) const { return (*this)[i].level == Level::Time; }
  /// The price of receiving an element over an axis of ranks: 1 between cores, more on slower
  /// links.
  double price(int i) const { return prices_[static_cast<std::size_t>(i)]; }
  /// -1 for an axis that the mesh lacks.
  int find(std::string_view name) const;

  AxisPlacements whole() const;
  /// Axes that the mesh lacks are dropped. Errors: a dim has its axes in another order.
  AxisPlacements read(const Sharding& sharding) const;
  /// Values that lie alike share what says so.
  Shared<Placement> write(const AxisPlacements& on_axes, int ndim) const;

 private:
  std::vector<Axis> axes_;
  std::vector<double> prices_;
  struct Less {
    bool operator()(const std::pair<int, AxisPlacements>& a,
                    const std::pair<int, AxisPlacements>& b) const;
  };
  mutable std::map<std::pair<int, AxisPlacements>, Shared<Placement>, Less> known_;
};

}  // namespace tessera
