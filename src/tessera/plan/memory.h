#pragma once
/// Memory planning: offsets for buffers whose lifetimes are known.

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// Alive at times first ... last, both included. `bytes` is a multiple of the alignment.
struct Lifetime {
  std::int64_t bytes = 0;
  std::int32_t first = 0, last = 0;
};

struct MemoryLayout {
  std::vector<std::int64_t> offsets;  // one per buffer
  std::int64_t bytes = 0;             // of the arena
  std::int64_t lower_bound = 0;       // the most bytes alive at once: no layout can be smaller
};

/// The smallest of several greedy layouts: buffers in order of size, of area (bytes x time) or of
/// length, each at the tightest gap, or the lowest, that is free during its whole life.
/// Deterministic. Source: for layered Transformers size-ordered best fit lies within 0.2 % of the
/// bound (docs/design.md, memory).
MemoryLayout plan_memory(std::span<const Lifetime> buffers);

}  // namespace tessera
