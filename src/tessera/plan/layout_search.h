#pragma once
/// An exact search for memory layouts: places for buffers whose lifetimes are known, below a height
/// that is given, or the proof that there are none.
///
/// Where the greedy layouts of plan/memory.h take the first gap that is free, this search goes on
/// until every choice is refuted. The problem is NP-hard, so it ends after a given number of steps,
/// not after a time: the same buffers give the same layout on every machine.
/// Source: docs/internals/design.md, Memory, says what is searched and why nothing is missed. Ideas from
/// Moffitt 2023, MiniMalloc, doi 10.1145/3623278.3624752, and Maas et al. 2022, TelaMalloc,
/// doi 10.1145/3567955.3567961.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera {

/// Alive at times lower <= t < upper.
struct TimedBuffer {
  std::int64_t lower = 0, upper = 0;
  std::int64_t bytes = 0;      // 0: lies anywhere, at offset 0 unless one is given
  std::int64_t alignment = 1;  // of the offset
  std::optional<std::int64_t> offset = std::nullopt;  // a place that is given; >= 0
};

enum class LayoutOutcome {
  Found,
  Impossible,  // proved: no layout is that small
  GaveUp,      // the steps are used up, or the problem is too large to begin with
};

struct FoundLayout {
  LayoutOutcome outcome = LayoutOutcome::GaveUp;
  std::vector<std::int64_t> offsets;  // one per buffer, where Found
  std::int64_t height = 0;            // the end of the highest buffer that has bytes
  std::int64_t decisions = 0;         // buffers placed on the way, those taken back included
  std::int64_t steps = 0;             // buffers looked at; about 3 ns each
};

/// A layout with no buffer beyond `capacity`: a greedy one where that suffices.
/// Errors: Fault::Usage: the buffers have together more than kMaxSize bytes; an offset that is
/// given is not a multiple of its alignment.
FoundLayout search_layout(std::span<const TimedBuffer> buffers, std::int64_t capacity,
                          std::int64_t max_steps);

struct SmallestLayout {
  std::vector<std::int64_t> offsets;
  std::int64_t height = 0;
  // No layout is smaller: the fullest moment, the end of a buffer whose place is given, or a height
  // that was refuted.
  std::int64_t lower_bound = 0;
};

/// The smallest layout found: at the fullest moment's bytes first, then halving what lies between
/// the greatest height without a layout and the smallest with one, from greedy ones on. Exact where
/// the steps suffice.
/// nullopt: places that are given contradict each other, or the problem is too large.
std::optional<SmallestLayout> smallest_layout(std::span<const TimedBuffer> buffers,
                                              std::int64_t max_steps);

/// The same from a layout that is known, until it is within `near_enough` of its bound. Leaves it
/// as it is, without looking, where the steps would not suffice to place all buffers once.
void improve_layout(std::span<const TimedBuffer> buffers, SmallestLayout& layout,
                    std::int64_t near_enough, std::int64_t max_steps);

/// Most bytes alive at one time.
std::int64_t fullest_moment_bytes(std::span<const TimedBuffer> buffers);

}  // namespace tessera
