#pragma once
/// Where values are kept and read, and what lies between the two.

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/search/op_menu.h"

namespace tessera {

/// Where a value is for somebody who reads it, and as what its gradient comes back.
struct Port {
  AxisPlacements on_axes;
  AxisPlacements gradient;  // empty: none comes back
  friend bool operator==(const Port&, const Port&) = default;
};
using Ports = std::vector<Port>;

/// A decision as the place of a value: the port of each of its options.
struct ValueSource {
  int decision = -1;
  std::shared_ptr<const Ports> ports;
  std::shared_ptr<const std::vector<int>> port_of;  // per option
};

/// The place of an item in a list that has each once; added where it is new.
template <typename T>
int add_once(std::vector<T>& list, const T& item) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == item) return static_cast<int>(i);
  }
  list.push_back(item);
  return static_cast<int>(list.size()) - 1;
}

/// Ports and tables, each made once: what is alike shares them.
class SourceTables {
 public:
  SourceTables(const Graph& graph, Prices& prices) : graph_(graph), prices_(prices) {}

  /// Where an operand must lie, option by option; where a result is kept. Without a decision.
  const ValueSource& read_by(const OpMenu& menu, int operand);
  const ValueSource& kept_by(const OpMenu& menu, int result);
  /// The price of bringing the value from one to the other, and its gradient back.
  std::shared_ptr<const CostTable> between(const ValueSource& from, ValueId value,
                                           const ValueSource& to);

 private:
  Cost come_back(const TensorType& type, const AxisPlacements& from, const AxisPlacements& to,
                 bool of_state);

  const Graph& graph_;
  Prices& prices_;
  std::map<std::pair<const OpMenu*, int>, ValueSource> sources_;
  std::map<std::tuple<const void*, const void*, const void*, const void*, int, std::string>,
           std::shared_ptr<const CostTable>>
      tables_;
};

}  // namespace tessera
