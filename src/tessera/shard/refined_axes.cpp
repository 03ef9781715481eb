#include "tessera/shard/refined_axes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"

namespace tessera {

namespace {

std::vector<DeviceMatrix> matrices_of(const std::vector<GivenLayout>& given,
                                      const std::vector<TensorLayout>& automatic) {
  std::vector<DeviceMatrix> out;
  for (const GivenLayout& one : given) out.push_back(one.layout.matrix);
  for (const TensorLayout& layout : automatic) out.push_back(layout.matrix);
  return out;
}

/// By two axes that share a dim, the major one first: whose layout has them so.
using Orders = std::map<std::pair<std::string, std::string>, std::string>;

[[noreturn]] void refuse(const Orders& before, const std::vector<std::string>& axes) {
  std::vector<std::string> lines;
  const auto among = [&](const std::string& axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  for (const auto& [pair, owner] : before) {
    if (among(pair.first) && among(pair.second))
      lines.push_back(text(owner, " cuts a dim by ", pair.first, " and then by ", pair.second));
  }
  fail(Fault::Usage, "layouts order the axes ", join(axes), " in two ways: ", join(lines, ", "),
       "; use the same order in all layouts");
}

}  // namespace

RefinedAxes::RefinedAxes(const std::vector<GivenLayout>& given,
                         const std::vector<TensorLayout>& automatic)
    : matrix_(matrices_of(given, automatic)) {
  for (std::size_t i = 0; i < matrix_.sizes().size(); ++i) names_.push_back(text("d", i));
  for (const GivenLayout& one : given) name_axes(one.layout);
  order_axes(given);
}

void RefinedAxes::name_axes(const TensorLayout& layout) {
  for (std::size_t i = 0; i < layout.aliases.size(); ++i) {
    const std::vector<int> axes =
        matrix_.axes_of(layout.matrix, static_cast<int>(layout.matrix.size() - 1 - i));
    const std::string& alias = layout.aliases[i];
    const bool taken =
        alias == kMicrobatchAxis || std::find(names_.begin(), names_.end(), alias) != names_.end();
    if (axes.size() == 1 && !taken) names_[at(axes[0])] = alias;
  }
}

/// Axes that share a dim keep their order; the others follow in the order of the mesh.
void RefinedAxes::order_axes(const std::vector<GivenLayout>& given) {
  Orders before;
  for (const GivenLayout& one : given) {
    const Sharding said = as_said(one.layout);
    for (const std::vector<std::string>& axes : said.dims) {
      for (std::size_t i = 1; i < axes.size(); ++i)
        before.emplace(std::pair(axes[i - 1], axes[i]), one.owner);
    }
  }
  std::vector<std::string> left = names_;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](const std::string& name) {
      return std::none_of(left.begin(), left.end(), [&](const std::string& other) {
        return before.count({other, name}) > 0;
      });
    });
    if (next == left.end()) refuse(before, left);
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
  Sharding out = as_said(layout);
  for (std::vector<std::string>& axes : out.dims) {
    std::sort(axes.begin(), axes.end(), [&](const std::string& a, const std::string& b) {
      return std::find(major_.begin(), major_.end(), a) <
             std::find(major_.begin(), major_.end(), b);
    });
  }
  return out;
}

Sharding RefinedAxes::as_said(const TensorLayout& layout) const {
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
