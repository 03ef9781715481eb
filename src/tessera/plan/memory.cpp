#include "tessera/plan/memory.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "tessera/base/round_up.h"
#include "tessera/base/size.h"
#include "tessera/plan/layout_search.h"
#include "tessera/plan/occupancy.h"

namespace tessera {

namespace {

/// Limit of the exact search: some 30 ms, small beside the tenths of a second of compiling.
constexpr std::int64_t kSearchSteps = 10'000'000;

enum class Fit { Tightest, Lowest };

/// When most bytes are alive, beside what is kept.
struct FullestMoment {
  std::int64_t bytes = 0;
  std::int64_t time = 0;  // twice that of buffers, and one more

  bool has(const Lifetime& b) const { return 2 * b.first + 1 <= time && time <= 2 * b.last + 1; }
};

FullestMoment fullest_moment(std::span<const Lifetime> buffers, std::span<const KeptBuffer> kept) {
  std::vector<std::pair<std::int32_t, std::int64_t>>
      events;  // ends before starts at the same time: last is included
  for (const Lifetime& b : buffers) {
    events.emplace_back(2 * b.first + 1, b.bytes);
    events.emplace_back(2 * b.last + 2, -b.bytes);
  }
  for (const KeptBuffer& b : kept) {
    if (!b.idle) continue;
    events.emplace_back(2 * b.idle->first, -b.bytes);
    events.emplace_back(2 * b.idle->last + 3, b.bytes);
  }
  std::sort(events.begin(), events.end());
  std::int64_t alive = 0;
  FullestMoment most;
  for (const auto& [time, bytes] : events) {
    alive += bytes;
    if (alive > most.bytes) most = {alive, time};
  }
  return most;
}

MemoryLayout place_in_order(std::span<const Lifetime> buffers, std::span<const KeptBuffer> kept,
                            const std::vector<std::size_t>& order, Fit fit,
                            std::int64_t alignment) {
  MemoryLayout out;
  out.offsets.resize(buffers.size());
  std::int32_t end_of_time = 1;
  for (const Lifetime& b : buffers) end_of_time = std::max(end_of_time, b.last + 1);
  Occupancy taken(end_of_time, buffers.size() + kept.size());
  std::int64_t bottom = 0;
  for (const KeptBuffer& b : kept) {
    const Stretch stretch{b.offset, b.offset + b.bytes};
    bottom = std::min(bottom, b.offset);
    const TimeSpan idle = b.idle.value_or(TimeSpan{end_of_time, end_of_time});
    if (idle.first > 0) taken.add({0, idle.first - 1}, stretch);
    if (idle.last + 1 < end_of_time) taken.add({idle.last + 1, end_of_time - 1}, stretch);
  }
  const auto padding = [&](std::size_t i) {
    return (alignment - buffers[i].bytes % alignment) % alignment;
  };
  for (const std::size_t i : order) {
    const Lifetime& b = buffers[i];
    // `end` is that of what is alive with b below the gap being looked at. Nothing may reach beyond
    // the first buffer once the layout is upside down.
    std::int64_t end = kept.empty() && padding(i) < padding(order[0]) ? alignment : bottom;
    std::optional<std::int64_t> best;
    std::int64_t best_gap = 0;
    for (const Stretch& other : taken.during({b.first, b.last})) {
      const std::int64_t gap = other.offset - end;
      if (gap >= b.bytes && (!best || gap < best_gap)) {
        best = end, best_gap = gap;
        if (fit == Fit::Lowest || gap - b.bytes < alignment) break;  // none can be tighter
      }
      end = std::max(end, other.end);
    }
    const std::int64_t offset = best.value_or(end);
    out.offsets[i] = offset;
    out.bytes = std::max(out.bytes, offset + b.bytes);
    taken.add({b.first, b.last}, {offset, offset + round_up(b.bytes, alignment)});
  }
  return out;
}

/// As the search sees them: in units of the alignment, above what is kept below 0, which is fixed
/// while it is not idle.
std::vector<TimedBuffer> in_units(std::span<const Lifetime> buffers,
                                  std::span<const KeptBuffer> kept, std::int64_t alignment,
                                  std::int64_t bottom) {
  std::vector<TimedBuffer> out;
  std::int64_t end_of_time = 1;
  for (const Lifetime& b : buffers) {
    out.push_back({b.first, std::int64_t{b.last} + 1, round_up(b.bytes, alignment) / alignment});
    end_of_time = std::max(end_of_time, out.back().upper);
  }
  for (const KeptBuffer& b : kept) {
    const TimedBuffer whole{0, end_of_time, b.bytes / alignment, 1,
                            (b.offset - bottom) / alignment};
    TimedBuffer before = whole, after = whole;
    if (b.idle) before.upper = b.idle->first, after.lower = std::int64_t{b.idle->last} + 1;
    if (before.lower < before.upper) out.push_back(before);
    if (b.idle && after.lower < after.upper) out.push_back(after);
  }
  return out;
}

/// Upside down: what was placed first, at 0, lies at the top.
void flip(std::span<const Lifetime> buffers, MemoryLayout& layout, std::int64_t alignment) {
  const auto up = [&](std::int64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  const std::int64_t top = up(layout.bytes);
  layout.bytes = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    layout.offsets[i] = top - layout.offsets[i] - up(buffers[i].bytes);
    layout.bytes = std::max(layout.bytes, layout.offsets[i] + buffers[i].bytes);
  }
}

/// True if a buffer that is written to its last byte ends where the layout does, or if no buffer is
/// written whole.
bool ends_in_written(std::span<const Lifetime> buffers, const MemoryLayout& layout) {
  bool any = false;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].written_whole) continue;
    if (layout.offsets[i] + buffers[i].bytes == layout.bytes) return true;
    any = true;
  }
  return !any;
}

/// A smaller layout than `best` by the exact search, where it finds one in few steps.
void search_smaller(std::span<const Lifetime> buffers, std::span<const KeptBuffer> kept,
                    std::int64_t alignment, std::int64_t near_enough, MemoryLayout& best) {
  std::int64_t bottom = 0;
  for (const KeptBuffer& b : kept) bottom = std::min(bottom, b.offset);
  const std::vector<TimedBuffer> timed = in_units(buffers, kept, alignment, bottom);
  SmallestLayout found;
  found.height = (round_up(best.bytes, alignment) - bottom) / alignment;
  improve_layout(timed, found, near_enough / alignment, kSearchSteps);
  if (found.offsets.empty()) return;
  MemoryLayout smaller;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    smaller.offsets.push_back(found.offsets[i] * alignment + bottom);
    smaller.bytes = std::max(smaller.bytes, smaller.offsets[i] + buffers[i].bytes);
  }
  if (kept.empty() && !ends_in_written(buffers, smaller)) flip(buffers, smaller, alignment);
  const bool ends_well = !kept.empty() || ends_in_written(buffers, smaller);
  if (ends_well && smaller.bytes < best.bytes) best = std::move(smaller);
}

}  // namespace

MemoryLayout plan_memory(std::span<const Lifetime> buffers, std::int64_t alignment,
                         std::span<const KeptBuffer> kept, bool exact) {
  std::int64_t all = 0;  // no offset is greater
  for (const Lifetime& b : buffers)
    all = size_sum(all, round_up(b.bytes, alignment), "bytes of all buffers of a program");
  const FullestMoment fullest = fullest_moment(buffers, kept);
  const std::int64_t bound = fullest.bytes;
  const auto area = [](const Lifetime& of) {  // more than 64 bits hold, perhaps
    return static_cast<double>(of.bytes) * (of.last - of.first + 1);
  };
  using Less = std::function<bool(const Lifetime&, const Lifetime&)>;
  const std::array<Less, 5> orders = {
      [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; },
      [&](const Lifetime& a, const Lifetime& b) { return area(a) > area(b); },
      [](const Lifetime& a, const Lifetime& b) { return a.last - a.first > b.last - b.first; },
      // Buffers alive at the fullest moment come first, so they lie without gaps.
      [&](const Lifetime& a, const Lifetime& b) {
        return std::pair(fullest.has(a), area(a)) > std::pair(fullest.has(b), area(b));
      },
      [&](const Lifetime& a, const Lifetime& b) {
        const bool a_in = fullest.has(a), b_in = fullest.has(b);
        if (a_in != b_in) return a_in;
        return a_in ? a.last > b.last : a.bytes > b.bytes;
      }};
  // Other orders are tried only where there is something to gain: alignment alone costs a few bytes
  // per buffer.
  const auto near_enough = [&](std::int64_t bytes) { return bytes - bound <= bound / 2000; };
  MemoryLayout best;
  for (const Less& less : orders) {
    for (const Fit fit : {Fit::Tightest, Fit::Lowest}) {
      std::vector<std::size_t> order(buffers.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return less(buffers[a], buffers[b]); });
      const auto whole = std::find_if(order.begin(), order.end(),
                                      [&](std::size_t i) { return buffers[i].written_whole; });
      if (whole != order.end()) std::rotate(order.begin(), whole, whole + 1);
      MemoryLayout layout = place_in_order(buffers, kept, order, fit, alignment);
      if (best.offsets.empty() || layout.bytes < best.bytes) best = std::move(layout);
      if (near_enough(best.bytes)) break;
    }
    if (near_enough(best.bytes)) break;
  }
  if (kept.empty()) flip(buffers, best, alignment);
  if (exact && !near_enough(best.bytes))
    search_smaller(buffers, kept, alignment, bound / 2000, best);
  best.lower_bound = bound;
  return best;
}

}  // namespace tessera
