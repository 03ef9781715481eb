#include "tessera/comm/group.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

int Group::index_of(int rank) const {
  const auto at = std::find(ranks.begin(), ranks.end(), rank);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

std::string to_text(const Group& group) {
  return text(group.name, " (ranks ", join(group.ranks), ")");
}

Group world_group(int n) {
  Group out{"world", std::vector<int>(static_cast<std::size_t>(n))};
  std::iota(out.ranks.begin(), out.ranks.end(), 0);
  return out;
}

Group group_of(const Mesh& mesh, const std::vector<std::string>& axes, int rank) {
  require(rank >= 0 && rank < mesh.ranks(), "rank ", rank, " is not one of the ", mesh.ranks(),
          " of mesh ", mesh);
  Group out{join(axes, "."), {rank}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    require(!mesh.is_time(axes[i]), "axis '", axes[i], "' of mesh ", mesh,
            " is time: its coordinates are no ranks");
    require(std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) ==
                axes.begin() + static_cast<std::ptrdiff_t>(i),
            "axis '", axes[i], "' is given twice");
  }
  const std::vector<std::int64_t> ranks = ranks_along(mesh, axes, rank);
  out.ranks.assign(ranks.begin(), ranks.end());
  return out;
}

}  // namespace tessera
