#include "tessera/plan/layout_search.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "tessera/base/size.h"
#include "tessera/plan/first_fit.h"
#include "tessera/plan/layout_tree.h"

namespace tessera {

namespace {

using Next = LayoutTree::Next;

/// A walk: which buffer is chosen, and the keys that rank buffers with one floor, greatest first:
/// T: bytes of the fullest section it is alive in, W: its lifetime, A: bytes times lifetime,
/// Z: bytes, O: with how many others it is alive.
struct Strategy {
  Next next;
  std::string_view keys;
};
constexpr Strategy kStrategies[] = {
    {Next::Tightest, "WAT"}, {Next::Lowest, "OAT"}, {Next::Tightest, "AT"},  {Next::Lowest, "TWA"},
    {Next::Tightest, "W"},   {Next::Lowest, "TO"},  {Next::Tightest, "OAT"}, {Next::Lowest, "TZ"},
};

/// Steps of the first walk of each strategy per place in a section: a walk that never goes back
/// takes some ten to two hundred.
constexpr std::int64_t kFirstSteps = 250;
/// Greedy layouts look for gaps in at most this part of the steps.
constexpr std::int64_t kGreedyShare = 4;
/// A problem for which the steps allow fewer is not worth looking at.
constexpr std::int64_t kLeastSteps = 100;
/// A problem with more takes gigabytes.
constexpr std::int64_t kMaxEntries = std::int64_t{1} << 26;

std::vector<std::array<double, 5>> keys_of(const LayoutProblem& problem) {
  std::vector<double> full(problem.sections(), 0);
  for (std::size_t s = 0; s < full.size(); ++s) {
    for (const int b : problem.alive[s])
      full[s] += static_cast<double>(problem.buffers[at(b)].bytes);
  }
  std::vector<std::array<double, 5>> out;
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const LayoutProblem::Buffer& of = problem.buffers[b];
    const double bytes = static_cast<double>(of.bytes);
    out.push_back({*std::max_element(full.begin() + of.begin, full.begin() + of.end), of.seconds,
                   bytes * of.seconds, bytes,
                   static_cast<double>(problem.neighbours(static_cast<int>(b)))});
  }
  return out;
}

/// Walks with all strategies in turn, each round with twice the steps of the one before.
class Search {
 public:
  explicit Search(std::span<const TimedBuffer> buffers, std::int64_t max_entries = kMaxEntries)
      : buffers_(buffers), tree_(make_layout_problem(buffers, max_entries)) {
    if (too_large()) return;
    for (const auto& alive : tree_.problem().alive) entries_ += std::ssize(alive);
    const std::vector<std::array<double, 5>> keys = keys_of(tree_.problem());
    for (const Strategy& strategy : kStrategies) ranks_.push_back(rank(keys, strategy.keys));
  }

  bool too_large() const {
    return tree_.problem().sections() == 0 && !tree_.problem().buffers.empty();
  }
  std::int64_t total() const { return tree_.problem().total; }

  FoundLayout within(std::int64_t capacity, std::int64_t max_steps) {
    FoundLayout out;
    if (too_large() || !tree_.can_walk()) return out;
    LayoutTree::Walk walk;
    walk.capacity = std::min(capacity, total());
    for (std::int64_t steps = kFirstSteps * (entries_ + 1);; steps *= 2) {
      for (std::size_t k = 0; k < ranks_.size(); ++k) {
        walk.next = kStrategies[k].next;
        walk.rank = ranks_[k];
        walk.max_steps = std::min(steps, max_steps - out.steps);
        if (walk.max_steps <= 0) return out;
        out.outcome = tree_.walk(walk);
        out.steps += tree_.steps();
        out.decisions += tree_.decisions();
        if (out.outcome == LayoutOutcome::Found) take(tree_.offsets(), out);
        if (out.outcome != LayoutOutcome::GaveUp) return out;
      }
    }
  }

  /// The best of greedy layouts, by each strategy's keys, until one is not above `enough`.
  /// Impossible: places that are given contradict each other.
  FoundLayout first_fit(std::int64_t enough, std::int64_t max_steps) const {
    FoundLayout best;
    if (too_large()) return best;
    FirstFit fit(tree_.problem());
    for (const std::vector<int>& rank : ranks_) {
      const bool placed = fit.place(rank, max_steps / kGreedyShare - best.steps);
      best.outcome = placed ? LayoutOutcome::Found : LayoutOutcome::Impossible;
      if (!placed) return best;
      FoundLayout layout;
      take(fit.offsets(), layout);
      best.steps += fit.steps(), best.decisions += std::ssize(rank);
      if (best.offsets.empty() || layout.height < best.height)
        best.offsets = std::move(layout.offsets), best.height = layout.height;
      if (best.height <= enough) break;
    }
    return best;
  }

  /// Looks for smaller layouts than `best` until it is that near to its bound.
  void improve(SmallestLayout& best, std::int64_t near_enough, std::int64_t max_steps) {
    raise_bound(best, max_steps);
    std::int64_t without = best.lower_bound - 1;  // the greatest height at which none was found
    if (best.height - best.lower_bound <= near_enough) return;
    for (std::int64_t next = best.lower_bound; next < best.height && max_steps > 0;) {
      FoundLayout found = within(next, max_steps / 2 + 1);
      max_steps -= found.steps;
      if (found.outcome == LayoutOutcome::Found) {
        best.offsets = std::move(found.offsets), best.height = found.height;
      } else {
        without = next;
        if (found.outcome == LayoutOutcome::Impossible) best.lower_bound = next + 1;
      }
      if (best.height - 1 - without <= near_enough) return;
      next = without + (best.height - without) / 2;
    }
  }

 private:
  /// To the least height that is not refuted before any choice.
  void raise_bound(SmallestLayout& best, std::int64_t& max_steps) {
    LayoutTree::Walk walk;
    walk.rank = ranks_[0];
    for (std::int64_t open = best.height; best.lower_bound < open && max_steps > 0;) {
      walk.capacity = best.lower_bound + (open - best.lower_bound) / 2;
      if (tree_.walk(walk) == LayoutOutcome::Impossible) {
        best.lower_bound = walk.capacity + 1;
      } else {
        open = walk.capacity;
      }
      max_steps -= tree_.steps();
    }
  }

  static std::vector<int> rank(const std::vector<std::array<double, 5>>& keys,
                               std::string_view order) {
    constexpr std::string_view kLetters = "TWAZO";
    std::vector<std::size_t> sorted(keys.size());
    std::iota(sorted.begin(), sorted.end(), std::size_t{0});
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
      for (const char letter : order) {
        const std::size_t key = kLetters.find(letter);
        if (keys[a][key] != keys[b][key]) return keys[a][key] > keys[b][key];
      }
      return false;
    });
    std::vector<int> out(keys.size());
    for (std::size_t k = 0; k < sorted.size(); ++k) out[sorted[k]] = static_cast<int>(k);
    return out;
  }

  void take(const std::vector<std::int64_t>& offsets, FoundLayout& out) const {
    for (const TimedBuffer& b : buffers_) out.offsets.push_back(b.offset.value_or(0));
    const LayoutProblem& problem = tree_.problem();
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      out.offsets[problem.index[b]] = offsets[b];
      out.height = std::max(out.height, offsets[b] + problem.buffers[b].bytes);
    }
  }

  std::span<const TimedBuffer> buffers_;
  LayoutTree tree_;
  std::int64_t entries_ = 0;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace

FoundLayout search_layout(std::span<const TimedBuffer> buffers, std::int64_t capacity,
                          std::int64_t max_steps) {
  Search search(buffers);
  FoundLayout greedy = search.first_fit(capacity, max_steps);
  const bool fits = greedy.outcome == LayoutOutcome::Found && greedy.height <= capacity;
  if (fits || greedy.outcome == LayoutOutcome::Impossible) return greedy;
  FoundLayout out = search.within(capacity, max_steps - greedy.steps);
  out.steps += greedy.steps;
  return out;
}

std::optional<SmallestLayout> smallest_layout(std::span<const TimedBuffer> buffers,
                                              std::int64_t max_steps) {
  std::int64_t least = fullest_moment_bytes(buffers);
  for (const TimedBuffer& b : buffers) {
    if (b.offset && b.bytes > 0) least = std::max(least, size_sum(*b.offset, b.bytes, "a buffer"));
  }
  Search search(buffers);
  FoundLayout greedy = search.first_fit(least, max_steps);
  if (greedy.outcome != LayoutOutcome::Found) return std::nullopt;
  SmallestLayout out{std::move(greedy.offsets), greedy.height, least};
  search.improve(out, 0, max_steps - greedy.steps);
  return out;
}

void improve_layout(std::span<const TimedBuffer> buffers, SmallestLayout& layout,
                    std::int64_t near_enough, std::int64_t max_steps) {
  layout.lower_bound = std::max(layout.lower_bound, fullest_moment_bytes(buffers));
  if (layout.height - layout.lower_bound <= near_enough) return;
  Search search(buffers, std::min(kMaxEntries, max_steps / kLeastSteps));
  if (!search.too_large()) search.improve(layout, near_enough, max_steps);
}

std::int64_t fullest_moment_bytes(std::span<const TimedBuffer> buffers) {
  std::vector<std::pair<std::int64_t, std::int64_t>> events;  // deaths before births at one time
  for (const TimedBuffer& b : buffers) {
    events.emplace_back(b.lower, b.bytes);
    events.emplace_back(b.upper, -b.bytes);
  }
  std::sort(events.begin(), events.end());
  std::int64_t alive = 0, most = 0;
  for (const auto& [time, bytes] : events) most = std::max(most, alive += bytes);
  return most;
}

}  // namespace tessera
