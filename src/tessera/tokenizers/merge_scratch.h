#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

/// Memory of MergeTable::apply(), kept from call to call.
struct MergeScratch {
  std::vector<std::int32_t> next, before;
  std::vector<std::uint64_t> heap;
};

}  // namespace tessera
