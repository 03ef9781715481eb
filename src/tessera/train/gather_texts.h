#pragma once
/// One text of each rank, on rank 0.

#include <string>
#include <vector>

#include "tessera/comm/communicator.h"

namespace tessera {

/// In the order of ranks; empty on ranks but 0. Every rank calls it. world == nullptr: there is
/// one.
std::vector<std::string> gather_texts(Communicator* world, const std::string& mine);

}  // namespace tessera
