#pragma once
/// The placements that a strategy gives to batch inputs, states and named values.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/passes/axis_placements.h"

namespace tessera {

class StatePlaces {
 public:
  /// Errors: a pin that does not fit what it names: the message has all of them.
  StatePlaces(const Graph& graph, const Strategy& strategy, const Axes& axes);

  /// A batch input, with its axes of time: they cut it where it is read. Pinned by its name, or as
  /// all are.
  AxisPlacements batch(const Node& node) const;
  /// The same as it is stored: whole in time, and along what cuts it after time.
  AxisPlacements stored_batch(const Node& node) const;
  /// The placements of one state, looked up by its path.
  struct Places {
    AxisPlacements use;          // as forward and backward read it
    AxisPlacements home;         // as it is stored; the update sees it so
    AxisPlacements gradient;     // of a parameter: finished
    AxisPlacements accumulator;  // the sum that micro-batches add to
  };
  const Places& of(std::string_view path) const { return places_.find(path)->second; }
  /// A named value; nullptr where no pin matches.
  const Sharding* pinned(const Node& node) const;

 private:
  Places place(const State& state, const TensorType& type) const;
  const Sharding* find(std::string_view path) const;
  AxisPlacements with(AxisPlacements on_axes, const std::vector<std::string>& more,
                      const Shape& shape) const;
  AxisPlacements large_enough(const AxisPlacements& cut, const AxisPlacements& whole,
                              const TensorType& type) const;

  const Strategy& strategy_;
  const Axes& axes_;
  std::set<std::string> copied_;  // copied_parameters
  std::map<std::string, Places, std::less<>> places_;
};

}  // namespace tessera
