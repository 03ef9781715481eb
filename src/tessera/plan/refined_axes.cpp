#include "tessera/plan/refined_axes.h"

#include <algorithm>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"

namespace tessera {

namespace {

std::vector<DeviceMatrix> matrices_of(const std::vector<TensorLayout>& layouts) {
  std::vector<DeviceMatrix> out;
  for (const TensorLayout& layout : layouts) out.push_back(layout.matrix);
  return out;
}

}  // namespace

RefinedAxes::RefinedAxes(const std::vector<TensorLayout>& layouts) : matrix_(matrices_of(layouts)) {
  name_axes(layouts);
  order_axes(layouts);
}

void RefinedAxes::name_axes(const std::vector<TensorLayout>& layouts) {
  for (std::size_t i = 0; i < matrix_.sizes().size(); ++i) names_.push_back(text("d", i));
  for (const TensorLayout& layout : layouts) {
    for (std::size_t i = 0; i < layout.aliases.size(); ++i) {
      const std::vector<int> axes =
          matrix_.axes_of(layout.matrix, static_cast<int>(layout.matrix.size() - 1 - i));
      const std::string& alias = layout.aliases[i];
      const bool taken = alias == kMicrobatchAxis ||
                         std::find(names_.begin(), names_.end(), alias) != names_.end();
      if (axes.size() == 1 && !taken) names_[at(axes[0])] = alias;
    }
  }
}

/// Axes of one dim keep their order; the others follow in the order of the mesh.
void RefinedAxes::order_axes(const std::vector<TensorLayout>& layouts) {
  std::set<std::pair<std::string, std::string>> before;
  for (const TensorLayout& layout : layouts) {
    const Sharding sharding = this->sharding(layout);
    for (const std::vector<std::string>& axes : sharding.dims) {
      for (std::size_t i = 1; i < axes.size(); ++i) before.emplace(axes[i - 1], axes[i]);
    }
  }
  std::vector<std::string> left = names_;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](const std::string& name) {
      return std::none_of(left.begin(), left.end(), [&](const std::string& other) {
        return before.count({other, name}) > 0;
      });
    });
    require(next != left.end(), "layouts order the axes ", join(left),
            " in two ways, major first here and minor there; order them alike in every tensor");
    major_.push_back(*next);
    left.erase(next);
  }
}

Mesh RefinedAxes::mesh(Axis time) const {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < names_.size(); ++i)
    axes.push_back({names_[i], matrix_.sizes()[i], Level::Core});
  axes.push_back(std::move(time));
  return Mesh(std::move(axes));
}

Sharding RefinedAxes::sharding(const TensorLayout& layout) const {
  Sharding out = Sharding::replicated(static_cast<int>(layout.map.size()));
  for (std::size_t d = 0; d < layout.map.size(); ++d) {
    for (const int dim : layout.map[d]) {
      for (const int axis : matrix_.axes_of(layout.matrix, dim))
        out.dims[d].push_back(names_[at(axis)]);
    }
  }
  return out;
}

}  // namespace tessera
