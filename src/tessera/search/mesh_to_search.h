#pragma once
/// The mesh on which placements are searched where nobody names one.

#include <cstdint>
#include <vector>

#include "tessera/tensor/machine.h"
#include "tessera/tensor/mesh.h"

namespace tessera {

/// At most three factors of so many devices, as equal as can be, the largest first: 64 is 4 x 4
/// x 4.
std::vector<std::int64_t> factors_to_search(std::int64_t devices);

/// The mesh with the level of each axis of ranks where the machine has it: neighbours along the
/// last axis are neighbours on the machine.
Mesh on_levels(const Mesh& mesh, const Machine& machine);

/// The axes "d0", "d1", "d2" of so many devices, on the levels of the machine.
Mesh mesh_to_search(std::int64_t devices, const Machine& machine);

}  // namespace tessera
