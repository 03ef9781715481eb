#pragma once
/// The space that Redistributor searches: all shardings of one shape over a few axes, as small
/// codes, and the moves between them.

#include <array>
#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tessera/passes/axis_placements.h"
#include "tessera/passes/redistribute.h"

namespace tessera {

/// Directed, each axis has at most three placements: 3^10 shardings at most.
constexpr std::size_t kMaxMoveAxes = 10;

/// How a value is placed on one axis, and, where the axis shards a dim, how many others of that dim
/// are major to it.
struct OrderedPlacement {
  AxisPlacement on_axis = kWhole;
  std::int8_t position = 0;
  friend auto operator<=>(const OrderedPlacement&, const OrderedPlacement&) = default;
};
/// Per axis; those that the problem lacks are whole.
using OrderedPlacements = std::array<OrderedPlacement, kMaxMoveAxes>;
constexpr OrderedPlacement at_dim(int dim, std::size_t position) {
  return {static_cast<AxisPlacement>(dim), static_cast<std::int8_t>(position)};
}

/// Costs are whole femtoseconds in a double: sums are exact in any order up to nine seconds, so
/// equal costs are equal.
struct MoveAxis {
  std::int64_t size = 1;
  bool time = false;
};

struct MoveProblem {
  Shape shape;
  std::int64_t element = 1;       // bytes of one
  std::vector<MoveAxis> axes;     // at most kMaxMoveAxes
  std::vector<LinkPrice> prices;  // of every set of axes, by its bits
  std::vector<int> dims;          // that axes may join
  std::vector<Monoid> monoids;    // that a value may be partial by
  bool directed = false;          // each axis goes only to its placement in the target
};

class MoveSpace {
 public:
  /// Every sharding that moves reach from `from`. `target` counts along time, and where directed.
  MoveSpace(MoveProblem problem, const OrderedPlacements& from, const OrderedPlacements& target);

  struct Step {
    MoveKind kind = MoveKind::Slice;
    std::int8_t from = -1, to = -1;
    std::uint16_t axes = 0;  // bit set of those that take part
    std::uint32_t node = 0;  // where it leads
    std::int64_t bytes = 0;
    double cost = 0;
  };
  struct Path {
    std::vector<Step> steps;
    double cost = 0;
    bool found = false;
  };
  /// The least cost, then the fewest moves, then the moves found first: always the same ones.
  Path cheapest(const OrderedPlacements& from, const OrderedPlacements& to) const;

  /// The cost of the cheapest path between the two; infinite if there is none. Remembered.
  double cheapest_cost(const OrderedPlacements& from, const OrderedPlacements& to);

  const OrderedPlacements& on_axes(std::uint32_t node) const { return nodes_[node]; }

 private:
  struct Hash {
    std::size_t operator()(const OrderedPlacements& on_axes) const;
  };
  struct View;
  using Axes = std::vector<int>;

  std::uint32_t node(const OrderedPlacements& on_axes);
  void expand(const View& at);
  void expand_partial(const View& at);
  void scatter(const View& at, const Axes& axes, const Axes& left, int dim);
  void add(const View& at, MoveKind kind, const Axes& axes, int from, int to, std::int64_t bytes,
           const OrderedPlacements& after);
  bool wanted(int axis, int dim, std::size_t position) const;
  double cost(MoveKind kind, std::int64_t bytes, std::int64_t ranks, std::uint16_t axes) const;
  std::string permutation_class(const View& at) const;
  Step permute(std::uint32_t from, std::uint32_t to) const;
  std::vector<double> costs_from(std::uint32_t from) const;

  MoveProblem problem_;
  OrderedPlacements target_;
  std::vector<OrderedPlacements> nodes_;
  std::unordered_map<OrderedPlacements, std::uint32_t, Hash> index_;
  std::vector<Step> steps_;  // of node i: from first_[i] to first_[i + 1]
  std::vector<std::uint32_t> first_;
  std::vector<std::int64_t> stored_;  // bytes of a shard
  std::vector<std::int64_t> digits_;  // per node and axis: what the axis counts (permute)
  std::vector<std::uint32_t> class_;  // nodes of one class permute into each other
  std::vector<std::vector<std::uint32_t>> members_;
  std::unordered_map<std::uint32_t, std::vector<double>> costs_;  // by node: to all nodes
};

}  // namespace tessera
