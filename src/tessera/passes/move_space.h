#pragma once
/// The space that Redistributor searches: all shardings of one shape over a few axes, as small
/// codes, and the moves between them.

#include <array>
#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tessera/passes/redistribute.h"
#include "tessera/passes/stands.h"

namespace tessera {

/// Directed, each axis stands in at most three ways: 3^10 shardings at most.
constexpr std::size_t kMaxMoveAxes = 10;

/// How a value stands on one axis, and, where the axis shards a dim, how many others of that dim
/// are major to it.
struct OrderedStand {
  Stand stand = kWhole;
  std::int8_t position = 0;
  friend auto operator<=>(const OrderedStand&, const OrderedStand&) = default;
};
/// Per axis; those that the problem lacks are whole.
using OrderedStands = std::array<OrderedStand, kMaxMoveAxes>;
constexpr OrderedStand at_dim(int dim, std::size_t position) {
  return {static_cast<Stand>(dim), static_cast<std::int8_t>(position)};
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
  bool directed = false;          // each axis goes only to where it stands in the target
};

class MoveSpace {
 public:
  /// Every sharding that moves reach from `from`. `target` counts along time, and where directed.
  MoveSpace(MoveProblem problem, const OrderedStands& from, const OrderedStands& target);

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
  Path cheapest(const OrderedStands& from, const OrderedStands& to) const;

  /// The cost of the cheapest path between the two; infinite if there is none. Remembered.
  double cheapest_cost(const OrderedStands& from, const OrderedStands& to);

  const OrderedStands& stands(std::uint32_t node) const { return nodes_[node]; }

 private:
  struct Hash {
    std::size_t operator()(const OrderedStands& stands) const;
  };
  struct View;
  using Axes = std::vector<int>;

  std::uint32_t node(const OrderedStands& stands);
  void expand(const View& at);
  void expand_partial(const View& at);
  void scatter(const View& at, const Axes& axes, const Axes& left, int dim);
  void add(const View& at, MoveKind kind, const Axes& axes, int from, int to, std::int64_t bytes,
           const OrderedStands& after);
  bool wanted(int axis, int dim, std::size_t position) const;
  double cost(MoveKind kind, std::int64_t bytes, std::int64_t ranks, std::uint16_t axes) const;
  std::string permutation_class(const View& at) const;
  Step permute(std::uint32_t from, std::uint32_t to) const;
  std::vector<double> costs_from(std::uint32_t from) const;

  MoveProblem problem_;
  OrderedStands target_;
  std::vector<OrderedStands> nodes_;
  std::unordered_map<OrderedStands, std::uint32_t, Hash> index_;
  std::vector<Step> steps_;  // of node i: from first_[i] to first_[i + 1]
  std::vector<std::uint32_t> first_;
  std::vector<std::int64_t> stored_;  // bytes of a shard
  std::vector<std::int64_t> digits_;  // per node and axis: what the axis counts (permute)
  std::vector<std::uint32_t> class_;  // nodes of one class permute into each other
  std::vector<std::vector<std::uint32_t>> members_;
  std::unordered_map<std::uint32_t, std::vector<double>> costs_;  // by node: to all nodes
};

}  // namespace tessera
