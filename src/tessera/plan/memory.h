#pragma once
/// Memory planning: offsets for buffers whose lifetimes are known.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera {

/// Alive at times first ... last, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  std::int32_t first = 0, last = 0;
  /// False for scratch memory, of which a kernel may use less than it asked for.
  bool written_whole = true;
};

/// Times first ... last, both included.
struct TimeSpan {
  std::int32_t first = 0, last = 0;
};

/// A buffer below the arena, at a place that is given.
struct KeptBuffer {
  std::int64_t offset = 0;       // below 0
  std::int64_t bytes = 0;        // both are multiples of the alignment
  std::optional<TimeSpan> idle;  // when its content is needed by nobody; nullopt: never
};

struct MemoryLayout {
  std::vector<std::int64_t> offsets;  // one per buffer, multiples of the alignment
  std::int64_t bytes = 0;             // of the arena: the end of the highest buffer
  std::int64_t lower_bound = 0;       // most bytes alive at one time: no layout can be smaller
};

/// The smallest of several greedy layouts: buffers in order of size, area (bytes x time) or length,
/// or first those alive at the fullest moment; each at the tightest or the lowest gap that is free.
/// Where that is more than 0.05 % above the bound, the exact search of plan/layout_search.h goes on
/// from it for a given number of steps. Deterministic. How near the bound it comes is in
/// docs/internals/design.md, Memory. `kept` fills the memory below 0 down to the lowest of its buffers. Where
/// and while those are idle, others may lie there, at offsets below 0. `exact`: false without that
/// search, which takes most of the time of small programs.
MemoryLayout plan_memory(std::span<const Lifetime> buffers, std::int64_t alignment,
                         std::span<const KeptBuffer> kept = {}, bool exact = true);

}  // namespace tessera
