#pragma once
/// Groups: which ranks take part in a collective, and in which order.

#include <string>
#include <vector>

#include "tessera/tensor/mesh.h"

namespace tessera {

/// Ranks of the world in the order in which they are summed and concatenated. `name` is what
/// messages and counters call it: "world", or the axes along which its ranks differ ("dp",
/// "dp.tp").
struct Group {
  std::string name;
  std::vector<int> ranks;
  int messages = 8;  // from one member to another that may be under way

  int size() const { return static_cast<int>(ranks.size()); }
  /// The index of a rank of the world in the group, or -1.
  int index_of(int rank) const;
  friend bool operator==(const Group&, const Group&) = default;
};

/// "dp (ranks 0, 2)"
std::string to_text(const Group& group);

/// All ranks, 0 to n - 1.
Group world_group(int n);

/// The ranks that differ from `rank` along `axes` only, the first axis outermost. Ranks number the
/// coordinates of the mesh row by row, time axes left out; an axis that is not there has size 1.
/// Errors: a time axis, an axis twice, a rank outside the mesh.
Group group_of(const Mesh& mesh, const std::vector<std::string>& axes, int rank);

}  // namespace tessera
