#pragma once
/// The axes that the device matrices of many ops have in common.

#include <string>
#include <vector>

#include "tessera/shard/device_matrix.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

/// A layout that a user gave, and what it is of: "op 'matmul'".
struct GivenLayout {
  TensorLayout layout;
  std::string owner;
};

class RefinedAxes {
 public:
  /// `automatic` layouts have no order of axes of their own: they adopt that of the given ones.
  /// Errors: matrices without a common refinement; given layouts that have two axes in two orders.
  explicit RefinedAxes(const std::vector<GivenLayout>& given,
                       const std::vector<TensorLayout>& automatic = {});

  /// All axes, outermost first: called as the first layout calls them of which one dim is one axis,
  /// but never like the axis of time; else "d0", "d1" and so on.
  const std::vector<std::string>& names() const { return names_; }
  /// In the order in which they meet on dims.
  const std::vector<std::string>& major() const { return major_; }
  Mesh mesh(Axis time) const;
  /// Axes that share a dim are in the order of major().
  Sharding sharding(const TensorLayout& layout) const;

 private:
  void name_axes(const TensorLayout& layout);
  void order_axes(const std::vector<GivenLayout>& given);
  Sharding as_said(const TensorLayout& layout) const;

  RefinedMatrix matrix_;
  std::vector<std::string> names_, major_;
};

}  // namespace tessera
