#pragma once
/// Prices of moving values and of computing, in the unit of decisions.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/passes/axis_placements.h"
#include "tessera/passes/decide.h"
#include "tessera/passes/redistribute.h"
#include "tessera/search/decision_graph.h"

namespace tessera {

Cost picoseconds(double seconds);

/// The kinds of traffic that a machine weighs differently (CostWeights).
enum class Traffic : std::uint8_t {
  Finish,     // sums that finish results of ops: beta1
  Between,    // all else between ops: beta2
  Parameter,  // gradients of parameters, and parameters: gamma
};

class Prices {
 public:
  Prices(const Strategy& strategy, const Machine& machine);
  const Axes& axes() const { return axes_; }

  /// The cost of moving a value of that type between two placements, as partition does it
  /// (passes/redistribute.h); remembered. kNever: there is no way.
  Cost move(const TensorType& type, const AxisPlacements& from, const AxisPlacements& to,
            Traffic traffic);
  /// The cost of one kernel, as a rank runs it.
  Cost work(const KernelWork& kernel) const;
  /// The cost of reading or writing so many bytes.
  Cost streamed(double bytes) const;
  /// How many ranks share out what lies so.
  std::int64_t parts(const AxisPlacements& on_axes) const;

 private:
  struct Key {
    std::uint64_t type, on_axes;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::uint64_t code(const AxisPlacements& on_axes) const;
  Cost raw(const TensorType& type, const AxisPlacements& from, const AxisPlacements& to);
  std::string like(const TensorType& type, const AxisPlacements& from,
                   const AxisPlacements& to) const;

  bool alike(const std::vector<int>& names) const;

  Axes axes_;
  Mesh mesh_;
  Machine machine_;
  Redistributor redistributor_;
  std::vector<std::vector<int>> renamings_;  // of axes that are as large and as near
  std::int64_t ranks_ = 1;
  std::vector<TensorType> types_;
  std::unordered_map<Key, Cost, Hash> known_;
  std::unordered_map<std::string, Cost> known_alike_;
};

}  // namespace tessera
