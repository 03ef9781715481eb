#pragma once
/// The axes that the device matrices of many ops have in common.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tensor/device_matrix.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

class RefinedAxes {
 public:
  /// Errors: matrices without a common refinement; tensors that want two axes in two orders.
  explicit RefinedAxes(const std::vector<TensorLayout>& layouts);

  /// All axes, outermost first: called as the first layout calls them of which one dim is one axis,
  /// but never like the axis of time; else "d0", "d1" and so on.
  const std::vector<std::string>& names() const { return names_; }
  /// In the order in which they meet on dims.
  const std::vector<std::string>& major() const { return major_; }
  Mesh mesh(Axis time) const;
  Sharding sharding(const TensorLayout& layout) const;

 private:
  void name_axes(const std::vector<TensorLayout>& layouts);
  void order_axes(const std::vector<TensorLayout>& layouts);

  RefinedMatrix matrix_;
  std::vector<std::string> names_, major_;
};

}  // namespace tessera
