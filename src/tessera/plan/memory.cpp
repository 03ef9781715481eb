#include "tessera/plan/memory.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tessera {

namespace {

enum class Fit { Tightest, Lowest };

std::int64_t lower_bound(std::span<const Lifetime> buffers) {
  std::vector<std::pair<std::int32_t, std::int64_t>>
      events;  // ends before starts at the same time: last is included
  for (const Lifetime& b : buffers) {
    events.emplace_back(2 * b.first + 1, b.bytes);
    events.emplace_back(2 * b.last + 2, -b.bytes);
  }
  std::sort(events.begin(), events.end());
  std::int64_t alive = 0, most = 0;
  for (const auto& [time, bytes] : events) {
    alive += bytes;
    most = std::max(most, alive);
  }
  return most;
}

struct Placed {
  std::int64_t offset, bytes;
  std::int32_t first, last;
};

MemoryLayout place_in_order(std::span<const Lifetime> buffers,
                            const std::vector<std::size_t>& order, Fit fit) {
  MemoryLayout out;
  out.offsets.resize(buffers.size());
  std::vector<Placed> placed;  // by offset
  placed.reserve(buffers.size());
  for (const std::size_t i : order) {
    const Lifetime& b = buffers[i];
    std::int64_t end = 0, best = -1,
                 best_gap = 0;  // end: of what is alive with b below the gap being looked at
    for (const Placed& p : placed) {
      if (p.last < b.first || p.first > b.last) continue;
      const std::int64_t gap = p.offset - end;
      if (gap >= b.bytes && (best < 0 || gap < best_gap)) {
        best = end, best_gap = gap;
        if (fit == Fit::Lowest) break;
      }
      end = std::max(end, p.offset + p.bytes);
    }
    const std::int64_t offset = best < 0 ? end : best;
    out.offsets[i] = offset;
    out.bytes = std::max(out.bytes, offset + b.bytes);
    const auto after =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [](std::int64_t value, const Placed& p) { return value < p.offset; });
    placed.insert(after, {offset, b.bytes, b.first, b.last});
  }
  return out;
}

}  // namespace

MemoryLayout plan_memory(std::span<const Lifetime> buffers) {
  const std::int64_t bound = lower_bound(buffers);
  using Less = bool (*)(const Lifetime&, const Lifetime&);
  constexpr std::array<Less, 3> kOrders = {
      [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; },
      [](const Lifetime& a, const Lifetime& b) {
        return a.bytes * (a.last - a.first + 1) > b.bytes * (b.last - b.first + 1);
      },
      [](const Lifetime& a, const Lifetime& b) { return a.last - a.first > b.last - b.first; }};
  MemoryLayout best;
  for (const Less less : kOrders) {
    for (const Fit fit : {Fit::Tightest, Fit::Lowest}) {
      std::vector<std::size_t> order(buffers.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return less(buffers[a], buffers[b]); });
      MemoryLayout layout = place_in_order(buffers, order, fit);
      if (best.offsets.empty() || layout.bytes < best.bytes) best = std::move(layout);
      if (best.bytes == bound) break;
    }
    if (best.bytes == bound) break;
  }
  best.lower_bound = bound;
  return best;
}

}  // namespace tessera
