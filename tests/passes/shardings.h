#pragma once
/// Every sharding of `ndim` dims over a mesh's axes.

#include <vector>

#include "tessera/tensor/sharding.h"

namespace tessera {

inline std::vector<Sharding> all_shardings(int ndim, const Mesh& mesh, bool partial = true) {
  std::vector<Sharding> out{Sharding::replicated(ndim)};
  for (const Axis& axis : mesh.axes()) {
    std::vector<Sharding> more;
    for (const Sharding& s : out) {
      more.push_back(s);
      if (partial) more.push_back(s.with_partial(axis.name, Monoid::Sum));
      for (std::size_t d = 0; d < s.dims.size(); ++d) {
        for (std::size_t at = 0; at <= s.dims[d].size(); ++at) {  // before, between, after
          more.push_back(s);
          auto& axes = more.back().dims[d];
          axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(at), axis.name);
        }
      }
    }
    out = std::move(more);
  }
  return out;
}

}  // namespace tessera
