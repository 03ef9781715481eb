#pragma once
/// Something for each value of a graph, in one piece of memory.

#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

template <typename T>
class ValueTable {
 public:
  ValueTable() = default;
  explicit ValueTable(const Graph& graph, T initial = {}) {
    first_.reserve(graph.nodes().size());
    std::size_t next = 0;
    for (const Node& node : graph.nodes()) {
      first_.push_back(next);
      next += node.results.size();
    }
    items_.resize(next, std::move(initial));
  }

  T& operator[](ValueId v) { return items_[index(v)]; }
  const T& operator[](ValueId v) const { return items_[index(v)]; }

 private:
  std::size_t index(ValueId v) const {
    return first_[static_cast<std::size_t>(v.node)] + static_cast<std::size_t>(v.index);
  }
  std::vector<std::size_t> first_;  // per node, the place of its first result
  std::vector<T> items_;
};

}  // namespace tessera
