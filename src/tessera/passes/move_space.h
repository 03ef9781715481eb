#pragma once
/// All shardings of one shape over a few axes, as small codes, and the moves between them. What
/// Redistributor searches.

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tessera/passes/redistribute.h"

namespace tessera {

/// Directed, each axis has at most three places: 3^10 codes at most.
constexpr std::size_t kMaxMoveAxes = 10;

/// Where each axis is: kReplicated, 1 + monoid, or dim_place(dim, position in the dim).
using Places = std::array<std::uint8_t, 16>;
constexpr std::uint8_t kReplicated = 0;
constexpr std::uint8_t partial_place(Monoid monoid) {
  return static_cast<std::uint8_t>(1 + static_cast<int>(monoid));
}
constexpr std::uint8_t dim_place(int dim, int position) {
  return static_cast<std::uint8_t>(16 * (dim + 1) + position);
}
constexpr bool is_partial_place(std::uint8_t place) { return place >= 1 && place < 16; }
/// -1: shards no dim.
constexpr int dim_at(std::uint8_t place) { return place / 16 - 1; }

/// Costs are whole femtoseconds in a double: sums are exact in any order up to nine seconds, so
/// equal costs are equal.
struct MoveAxis {
  std::int64_t size = 1;
  double per_byte = 0;
  double per_step = 0;
  bool time = false;
};

struct MoveProblem {
  Shape shape;
  std::int64_t element = 1;     // bytes of one
  std::vector<MoveAxis> axes;   // at most kMaxMoveAxes
  std::vector<int> dims;        // that axes may join
  std::vector<Monoid> monoids;  // that a value may be partial by
  bool directed = false;        // each axis goes only to its place in the target
};

class MoveSpace {
 public:
  /// Every sharding that moves reach from `from`. `target` counts along time, and where directed.
  MoveSpace(MoveProblem problem, const Places& from, const Places& target);

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
  Path cheapest(const Places& from, const Places& to) const;

  const Places& places(std::uint32_t node) const { return nodes_[node]; }

 private:
  struct Hash {
    std::size_t operator()(const Places& places) const;
  };
  struct View;
  using Axes = std::vector<int>;

  std::uint32_t node(const Places& places);
  void expand(const View& at);
  void expand_partial(const View& at);
  void scatter(const View& at, const Axes& axes, const Axes& left, int dim);
  void add(const View& at, MoveKind kind, const Axes& axes, int from, int to, std::int64_t bytes,
           const Places& after);
  bool wanted(int axis, int dim, std::size_t position) const;
  double cost(MoveKind kind, std::int64_t bytes, std::int64_t ranks, double per_byte,
              double per_step) const;
  std::string permutation_class(const View& at) const;
  Step permute(std::uint32_t from, std::uint32_t to) const;

  MoveProblem problem_;
  Places target_;
  std::vector<Places> nodes_;
  std::unordered_map<Places, std::uint32_t, Hash> index_;
  std::vector<Step> steps_;  // of node i: from first_[i] to first_[i + 1]
  std::vector<std::uint32_t> first_;
  std::vector<std::int64_t> stored_;  // bytes of a shard
  std::vector<std::int64_t> digits_;  // per node and axis: what the axis counts (permute)
  std::vector<std::uint32_t> class_;  // nodes of one class permute into each other
  std::vector<std::vector<std::uint32_t>> members_;
};

}  // namespace tessera
