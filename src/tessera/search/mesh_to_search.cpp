#include "tessera/search/mesh_to_search.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

std::vector<std::int64_t> factors_to_search(std::int64_t devices) {
  std::vector<std::int64_t> primes, out{1, 1, 1};
  for (std::int64_t p = 2; devices > 1; ++p) {
    if (p * p > devices) p = devices;
    for (; devices % p == 0; devices /= p) primes.push_back(p);
  }
  for (std::size_t i = primes.size(); i-- > 0;)
    *std::min_element(out.begin(), out.end()) *= primes[i];
  std::sort(out.rbegin(), out.rend());
  return out;
}

Mesh on_levels(const Mesh& mesh, const Machine& machine) {
  std::vector<Axis> axes = mesh.axes();
  std::int64_t neighbours = 1, in_use = 1;
  for (const Axis& axis : axes) in_use *= axis.level == Level::Time ? 1 : axis.size;
  for (std::size_t a = axes.size(); a-- > 0;) {
    if (axes[a].level == Level::Time) continue;
    axes[a].level = machine.level_of(neighbours *= axes[a].size, in_use);
  }
  return Mesh(std::move(axes));
}

Mesh mesh_to_search(std::int64_t devices, const Machine& machine) {
  std::vector<Axis> axes;
  for (const std::int64_t size : factors_to_search(devices))
    axes.push_back({text("d", axes.size()), size});
  return on_levels(Mesh(std::move(axes)), machine);
}

}  // namespace tessera
